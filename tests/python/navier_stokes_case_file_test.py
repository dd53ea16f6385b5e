"""apps/navier_stokes: case files. Flows whose profile is known, on meshes that are read, in SI units."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import navier_stokes_runs as runs
import numpy as np
import pytest
from rank_jobs import runtime_folder

pytest.importorskip("meshio")
from flow_cases import parts_of_metis, prepare, read_case, ring, solve
from flow_meshes import channel, write_case, write_mesh
from vtu import read_field

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow
WALLS = "low: {kind: wall}\nhigh: {kind: wall}\n"


def of(report: dict[str, Any], name: str) -> dict[str, Any]:
    """The figures of a boundary."""
    found: dict[str, Any] = next(each for each in report["boundaries"] if each["name"] == name)
    return found


@pytest.mark.parametrize("ranks", [1, 2])
def test_poiseuille_flow_has_its_profile_and_its_pressure(ranks: int, tmp_path: Path) -> None:
    """u = 6 U y (H - y) / H^2, the pressure falls by 12 mu U / H^2 a metre, and a wall is pulled by 6 mu U / H a metre.
    H = 0.2 m, U = 3 m/s, mu = 0.2 Pa s; the mesh is in mm, and half of its cells list their corners backwards."""
    write_mesh(channel((16, 16), (400, 200)), tmp_path / "channel.msh")
    case = write_case(
        tmp_path / "channel.yaml", "channel.msh",
        WALLS + "left: {kind: inlet, velocity_m_per_s: 3, profile: parabola}\nright: {kind: outlet}",
        "scale: 0.001\nstart_velocity_m_per_s: [3, 0]\n", "end_s: 0.3\n  courant: 0.5",
    )  # fmt: skip
    report, frame = solve(case, ranks)
    y = frame.centers()[:, 1]
    assert np.abs(frame.velocity[:, 0] - 6 * 3 * y * (0.2 - y) / 0.2**2).max() < 0.03 * 4.5
    inlet, outlet, low = (of(report, name) for name in ("left", "right", "low"))
    assert inlet["mass_flow_out_kg_per_s"] == pytest.approx(-2 * 3 * 0.2, rel=1e-9)
    assert outlet["mass_flow_out_kg_per_s"] == pytest.approx(2 * 3 * 0.2, rel=1e-6)
    assert inlet["pressure_pa"] == pytest.approx(12 * 0.2 * 3 / 0.2**2 * 0.4, rel=0.03)
    assert low["force_n"][0] == pytest.approx(6 * 0.2 * 3 / 0.2 * 0.4, rel=0.03)
    assert outlet["mass_flow_back_kg_per_s"] == 0 and inlet["area_m2"] == pytest.approx(0.2)
    assert (
        report["time"] == 0.3
        and report["courant"] <= 0.5
        and report["reynolds"] == pytest.approx(4.5 * 0.2 / 0.1, rel=0.05)
    )


@pytest.mark.parametrize("kind", ["", "wedge", "tetra"])
def test_couette_flow_between_periodic_sides(kind: str, tmp_path: Path) -> None:
    """u = U y / H, exactly, on every kind of solid cells: at the end less than a millionth of the start is left,
    exp(-pi^2 nu t / H^2) of the slowest mode."""
    write_mesh(channel((4, 4, 4), (1, 1, 1), kind), tmp_path / "box.msh")
    case = write_case(
        tmp_path / "box.yaml", "box.msh",
        "low: {kind: wall, forces: yes}\nhigh: {kind: moving_wall, velocity_m_per_s: [2, 0, 0]}\n"
        "left: {kind: periodic, with: right}\nright: {kind: periodic, with: left}\n"
        "back: {kind: periodic, with: front}\nfront: {kind: periodic, with: back}",
        time="end_s: 15\n  courant: 1",
    )  # fmt: skip
    report, frame = solve(case, 2)
    assert np.abs(frame.velocity - np.outer(frame.centers()[:, 1], [2, 0, 0])).max() < 1e-4
    assert of(report, "low")["force_n"][0] == pytest.approx(2 * 0.1 * 2, rel=1e-4)


def test_a_symmetry_plane_halves_a_channel(tmp_path: Path) -> None:
    """Driven by a force f: u = f (H^2 - y^2) / (2 nu) from the plane at y = 0 to the wall at H, also where the plane
    leans, so that its normal is none of the axes."""
    mesh = channel((4, 12), (1, 1))
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    leaning = type(mesh)(mesh.points @ turn.T, mesh.blocks, mesh.boundaries)
    write_mesh(leaning, tmp_path / "half.msh")
    case = write_case(
        tmp_path / "half.yaml", "half.msh",
        "low: {kind: symmetry}\nhigh: {kind: wall}\nleft: {kind: periodic, with: right}\n"
        "right: {kind: periodic, with: left}",
        "body_force_m_per_s2: [0.16, 0.12]\nreference: {velocity_m_per_s: 1}\n",
        "end_s: 40\n  courant: 0.5\n  step_s: 0.1",
    )  # fmt: skip
    _, frame = solve(case)
    along, y = frame.velocity[:, :2] @ turn[:, 0], frame.centers()[:, :2] @ turn[:, 1]
    assert np.abs(along - 0.2 * (1 - y**2) / 0.2).max() < 0.01
    assert np.abs(frame.velocity[:, :2] @ turn[:, 1]).max() < 1e-6


def test_a_rotating_wall_turns_the_fluid(tmp_path: Path) -> None:
    """Between two cylinders of radius 1 and 2, the inner one turning: u = a r + b / r (Couette, 1890)."""
    write_mesh(ring(), tmp_path / "ring.msh")
    case = write_case(
        tmp_path / "ring.yaml", "ring.msh",
        "in: {kind: moving_wall, rotation_rad_per_s: [0, 0, 1]}\nout: {kind: wall}", time="end_s: 20\n  courant: 0.8",
    )  # fmt: skip
    _, frame = solve(case)
    center = frame.centers()
    r = np.hypot(center[:, 0], center[:, 1])
    turning = (center[:, 0] * frame.velocity[:, 1] - center[:, 1] * frame.velocity[:, 0]) / r
    assert np.abs(turning - (4 / r - r) / 3).max() < 0.03


def test_a_flow_that_comes_back_at_an_outlet_stays_bounded(tmp_path: Path) -> None:
    """The fluid is dragged along one wall only, so that it comes in through the rest of its outlet."""
    write_mesh(channel((12, 12), (1, 1)), tmp_path / "open.msh")
    case = write_case(
        tmp_path / "open.yaml", "open.msh",
        "low: {kind: wall}\nhigh: {kind: moving_wall, velocity_m_per_s: [1, 0]}\nleft: {kind: wall}\n"
        "right: {kind: outlet}",
        "fluid: {density_kg_per_m3: 2, viscosity_m2_per_s: 0.002}\n", "end_s: 4\n  courant: 0.5",
    )  # fmt: skip
    report, frame = solve(case)
    outlet = of(report, "right")
    assert outlet["mass_flow_back_kg_per_s"] > 0.01 and abs(outlet["mass_flow_out_kg_per_s"]) < 1e-5
    assert np.abs(frame.velocity).max() < 1


def test_a_case_goes_on_from_its_checkpoint_and_another_one_does_not(tmp_path: Path) -> None:
    write_mesh(channel((8, 8), (2, 1)), tmp_path / "channel.msh")
    boundaries = WALLS + "left: {kind: inlet, mass_flow_kg_per_s: 2}\nright: {kind: outlet}"
    more = "output: {checkpoint_steps: 4, average_from_s: 0}\n"
    case = write_case(tmp_path / "channel.yaml", "channel.msh", boundaries, more, "end_s: 0.5\n  courant: 0.5")
    first, _ = solve(case, 2)
    assert read_field(tmp_path / "channel.out", "mean_velocity").any()
    write_case(tmp_path / "channel.yaml", "channel.msh", boundaries, more, "end_s: 0.8\n  courant: 0.4")
    again, _ = solve(case, 1, "--resume", "yes")
    assert 0 < again["first_step"] <= first["steps"] and again["time"] == 0.8
    write_case(tmp_path / "channel.yaml", "channel.msh", boundaries.replace(": 2}", ": 3}"), more)
    with pytest.raises(AssertionError, match="it has another case, mesh or fluid"):
        solve(case, 1, "--resume", "yes")


def test_the_ranks_have_the_parts_of_metis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flow is that of the parts of bisection, which are others."""
    pytest.importorskip("pymetis")
    write_mesh(channel((12, 9), (2, 1)), tmp_path / "channel.msh")
    boundaries = WALLS + "left: {kind: inlet, velocity_m_per_s: 1}\nright: {kind: outlet}"
    case = write_case(tmp_path / "channel.yaml", "channel.msh", boundaries, time="end_s: 0.5\n  step_s: 0.05")
    _, frame = solve(case, 3, "--tolerance", 1e-13)
    assert (frame.rank == parts_of_metis(case, 3)).all() and len(set(frame.rank)) == 3
    monkeypatch.setitem(sys.modules, "pymetis", None)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    _, other = solve(case, 3, "--tolerance", 1e-13)
    assert (other.rank != frame.rank).any() and np.abs(other.velocity - frame.velocity).max() < 1e-9


def test_the_program_reads_a_prepared_case_by_itself_and_refuses_a_damaged_one(tmp_path: Path) -> None:
    write_mesh(channel((4, 4), (2, 1)), tmp_path / "channel.msh")
    boundaries = WALLS + "left: {kind: inlet, velocity_m_per_s: 1}\nright: {kind: outlet}"
    case = write_case(tmp_path / "channel.yaml", "channel.msh", boundaries, time="end_s: 0.3\n  step_s: 0.05")
    file, _ = prepare(read_case(case), tmp_path)
    report = runs.solve(1, str(file))
    assert (report["case"], report["time"]) == ("channel", 0.3)
    good = file.read_bytes()
    head = good.index(b"\ndata\n")
    for text, why in [
        (b"", "it is no case that run.py has prepared"),
        (good[:-8], "it is damaged"),
        (good + b"more", "it is damaged"),
        (good.replace(b"array points f8 75", b"array points f8 9999999999999"), "it is damaged"),
        (good.replace(b"dimensions: 2", b"dimensions: x"), "its dimensions is no number"),
        (good.replace(b"memory_s", b"memory__"), "it has no memory_s"),
        (good[: head + 6] + b"\xff" * (len(good) - head - 6), "are damaged"),
    ]:
        file.write_bytes(text)
        runs.refused(2, why, 1, str(file))
    runs.refused(2, "none.flow: there is no such file", 2, str(tmp_path / "none.flow"))
