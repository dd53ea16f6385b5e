"""Pictures of programs have at least three points a line and at most five lines, and say what is simulated."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "apps/navier_stokes")]

pytest.importorskip("matplotlib")
import app_scaling  # noqa: E402
import figures  # noqa: E402

THREE = {1: 4.0, 2: 2.0, 4: 1.0}


@pytest.fixture
def axes() -> Any:
    from matplotlib.figure import Figure

    return Figure().add_subplot()


@pytest.mark.parametrize("name", app_scaling.PROGRAMS)
def test_the_picture_of_a_program_has_simulated_panels_alone(name: str) -> None:
    figure = app_scaling.picture(name)
    assert "SIMULATED" in figure.get_suptitle() and name in figure.get_suptitle()
    assert len(figure.axes) >= 2
    for panel in figure.axes:
        assert "simulated" in panel.get_title() and panel.get_ylabel() == "µs a step"
        assert 2 <= len(panel.lines) <= 5
        assert all(len(line.get_xdata()) >= 3 for line in panel.lines)


@pytest.mark.parametrize("name", [*app_scaling.MEASURED, "README"])
def test_the_table_of_a_page_is_what_was_measured(name: str) -> None:
    page = (ROOT / f"docs/apps/{name}.md").read_text(encoding="utf-8")
    assert app_scaling.page_with(name, page) == page, "run: .venv/bin/python benchmarks/app_scaling.py tables"


@pytest.mark.parametrize(
    "curves", [{"packed": {1: 2.0, 2: 1.0}}, {f"packed, {i}": THREE for i in range(6)}], ids=["two points", "six lines"]
)
def test_too_few_points_and_too_many_lines_are_refused(curves: dict[str, dict[int, float]], axes: Any) -> None:
    app_scaling.draw_simulated(axes, {"packed": THREE}, "three points")
    with pytest.raises(ValueError, match="at most five lines, of at least three points"):
        app_scaling.draw_simulated(axes, curves, "a title")


def test_lines_that_would_hide_each_other_are_one() -> None:
    def runs(of_packed: float) -> list[dict[str, Any]]:
        exchange = {"whole_field": 9.0, "packed": of_packed, "per_neighbor": 1.0}
        times = {"compute": 1.0, "reduction": 0.0}
        return [{"variant": v, "gpus": n, "exchange": x, **times} for v, x in exchange.items() for n in (1, 2, 4)]

    assert list(app_scaling.lines_of(runs(1.01))) == ["whole_field", "packed, per_neighbor", app_scaling.COMPUTATION]
    assert {"packed", "per_neighbor"} < set(app_scaling.lines_of(runs(1.5)))


def test_an_order_needs_three_points(tmp_path: Path) -> None:
    sizes = [1 / 16, 1 / 32, 1 / 64]
    for count in (2, 3):
        curve = {"even": (sizes[:count], [size**2 for size in sizes[:count]])}
        if count == 2:
            with pytest.raises(ValueError, match="at least three points"):
                figures.convergence(curve, "size", "title", tmp_path / "two.png", str)
        else:
            figures.convergence(curve, "size", "title", tmp_path / "three.png", str)
    assert [file.name for file in tmp_path.iterdir()] == ["three.png"]


def test_cells_that_touch_have_one_value_at_their_corners() -> None:
    left, right = (np.array([[x, 0], [x + 1, 0], [x + 1, 1], [x, 1]], float) for x in (0, 1))
    triangles, values = figures.at_corners([left, right], np.array([2.0, 4.0]))
    assert len(triangles.triangles) == 4
    assert {x: set(values[triangles.x == x]) for x in (0, 1, 2)} == {0: {2.0}, 1: {3.0}, 2: {4.0}}


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    from matplotlib.figure import Figure

    figures: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    return figures


def test_a_collective_has_a_panel_for_each_number_of_gpus(saved: list[Any], tmp_path: Path) -> None:
    from waywiser.report.simulated import plot_cases
    from waywiser.simulator.collectives import Case

    def case(ranks: int, algorithm: str, size: int) -> Case:
        return Case(
            ranks=ranks, nodes=ranks, size=size, algorithm=algorithm, direct="best", seconds=size * ranks * 1e-9
        )

    algorithms = ("ring", "double_tree", "in_network")
    cases = [case(n, name, size) for n in (16, 240, 24000) for name in algorithms for size in (1, 2, 4)]
    plot_cases(cases, "all_reduce", tmp_path / "a.png")
    (figure,) = saved
    assert "SIMULATED" in figure.get_suptitle()
    assert [axes.get_title() for axes in figure.axes] == ["16 GPUs", "240 GPUs", "24,000 GPUs"]
    assert {len(axes.lines) for axes in figure.axes} == {3}


def test_a_gpu_elsewhere_has_at_most_five_lines_a_panel(saved: list[Any], tmp_path: Path) -> None:
    from waywiser.bench.offload import LOCAL, Case, Run
    from waywiser.bench.offload_plot import plot_offload

    roads = ("remote, pipelined", "remote, pageable", "remote, pinned", "remote, direct", LOCAL)
    run = Run(tuple(float(point) for point in range(1, 8)), 20.0)
    slow = Run(run.seconds, 30.0)
    for more, title in (((), "all roads"), (("lo, pinned", "lo, direct"), "the fastest 5 of 7 roads")):
        cases = [Case(road, n, 1, slow if road in more else run, 3) for road in (*more, *roads) for n in (1, 2, 4)]
        plot_offload(cases, "", tmp_path / "a.png")
        figure = saved.pop()
        assert [len(axes.lines) for axes in figure.axes] == [4, 3, 5]
        assert [line.get_label() for line in figure.axes[2].lines] == list(roads)
        assert figure.axes[2].get_title() == f"{title}, added once: the whole"


@pytest.mark.parametrize(("reynolds", "round_one"), [(399.998, "400"), (100, "100"), (7421.3, "7421"), (0.5, "0.5")])
def test_the_title_of_a_flow_has_round_numbers(reynolds: float, round_one: str, tmp_path: Path) -> None:
    report = {"case": "bend", "reynolds": reynolds, "cells": 1000, "time": 2.0}
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert figures.what_it_is(tmp_path) == f"bend, Re {round_one}, 1,000 cells, time 2"
    (tmp_path / "report.json").write_text(json.dumps({**report, "boundaries": []}))
    assert figures.what_it_is(tmp_path) == f"bend, Re {round_one}, 1,000 cells, time 2 s"


def test_the_residuals_of_a_case_file_have_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    lines = dict.fromkeys(("time", "change", "pressure_iterations", "momentum_iterations"), np.ones(3))
    monkeypatch.setattr(figures, "history", lambda _: lines)
    monkeypatch.setattr(figures, "save", lambda figure, _: drawn.append(figure))
    report: dict[str, Any] = {"case": "bend", "reynolds": 1, "cells": 1, "time": 1}
    for more in ({}, {"boundaries": []}):
        (tmp_path / "report.json").write_text(json.dumps({**report, **more}))
        figures.residuals(tmp_path, tmp_path / "residuals.png")
    words = [[figure.axes[0].get_ylabel(), figure.axes[1].get_xlabel()] for figure in drawn]
    change = "change of velocity"
    assert words == [[f"{change}\nin a unit of time (rms)", "time"], [f"{change} in m/s² (rms)", "time in s"]]
