"""docs/experiments.md: its commands run, and its figures are what commands print or what recorded files hold."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
from documented_commands_test import blocks, words_of
from verb_runs import Run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/experiments.md").read_text(encoding="utf-8")
RESULTS = ROOT / "benchmarks/results"
PUBLISHED = runpy.run_path(str(ROOT / "scripts/published"))
OTHERS = "hgx-h100,hgx-h200,hgx-h200-roce,hgx-h800,hgx-a100,hgx-a100-roce,hgx-a800,hgx-v100,abci-v,a100-pcie,slingshot"
MACHINES = ["hse-a,hse-c,hse-e", "dgx-1v", "remote-t4,remote-a10", "dgx-a100,dgx-h100", OTHERS]
# What runs here: no command for hardware, and none of those behind a table, numbered or for machine files, which the
# table's command runs.
HERE = [line for line in blocks(PAGE) if not re.search(r"# on hardware|  # \d+$|^waywiser machine new ", line)]


def rows(header: str) -> list[list[str]]:
    """The cells of the table with this header."""
    after = PAGE.split(f"\n{header}\n", 1)[1].splitlines()[1:]
    lines = [line for i, line in enumerate(after) if all(each.startswith("|") for each in after[: i + 1])]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RESULTS / name).read_text().splitlines()]


def three(value: float) -> str:
    return f"{float(f'{value:.3g}'):g}"


def test_the_simulated_tables_are_what_their_commands_print() -> None:
    assert [found[1] for found in PUBLISHED["BLOCK"].findall(PAGE)] == MACHINES
    assert PUBLISHED["with_tables"](PAGE) == PAGE, "run: .venv/bin/python scripts/published"
    assert (
        PUBLISHED["with_tables"](PAGE.replace("| -7 % |", "| -8 % |")) == PAGE != PAGE.replace("| -7 % |", "| -8 % |")
    )


def test_each_published_finding_is_in_a_table() -> None:
    assert sum(PAGE.count(f"| {row.finding} |") for row in set_of_rows()) >= len(set_of_rows()) >= 27


def set_of_rows() -> list[Any]:
    from waywiser import cli
    from waywiser.simulator.published import compare

    return compare(cli.run)


@pytest.mark.parametrize("line", HERE)
def test_its_commands_run_here(line: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    words = [shlex.split(word)[0] for word in words_of(line)]
    assert words[0] == "waywiser"
    code, said, errors = run(*words[1:])
    assert code == 0 and said, errors
    if figure := re.search(r"# recorded: (.*)$", line):
        assert re.search(rf"^\*.* {re.escape(figure[1])} ", said, re.MULTILINE), said


def test_there_is_a_command_on_hardware_for_each_experiment() -> None:
    sections = PAGE.split("\n## ")[2:]
    assert len(sections) == 6 and len(HERE) >= 10
    for section in sections:
        assert "# on hardware" in section and "**Source.**" in section and "**Question.**" in section
        assert "**Difference.**" in section


def test_a_gpu_in_another_machine_is_what_was_recorded() -> None:
    file = json.loads((RESULTS / "offload-h100.json").read_text())
    whole = {r["road"]: r["whole_us"] / 1e3 for r in file["rows"] if (r["elements"], r["times"]) == (100_000_000, 100)}
    found = rows("| Road | Part | Whole, ms | Of local |")
    assert {road for road, *_ in found} == set(whole)
    for road, _, milliseconds, ratio in found:
        assert (milliseconds, ratio) == (three(whole[road]), f"{whole[road] / whole['local, pageable']:.2f}")


def test_the_flow_solver_is_what_was_recorded() -> None:
    def of(cells: int, way: str) -> tuple[str, float]:
        """Milliseconds with three digits, and the share of the exchanges, of the first such run."""
        for record in records("navier-stokes-2xh100.jsonl"):
            result = record["result"]
            if (result["cells"], record["gpus"]) == (cells, 2) and f"--exchange {way}" in record["run"]:
                return f"{1e3 * result['median_seconds_per_step']:#.3g}".rstrip("."), result["exchange_share"]
        raise AssertionError(f"no run of {cells} cells by {way}")

    found = rows("| Cells | `whole_field`: ms a step, share of exchanges | Automatic: ms a step, share | Share falls |")
    assert len(found) == 3
    for cells, whole, automatic, falls in found:
        (before, most), (after, least) = (of(int(cells.replace(",", "")), way) for way in ("whole_field", "auto"))
        assert (whole, automatic) == (f"{before}, {100 * most:.0f} %", f"{after}, {100 * least:.0f} %")
        assert falls == f"{most / least:.1f} times"


def test_processes_that_share_a_gpu_are_what_was_recorded() -> None:
    file = json.loads((RESULTS / "sharing-h200.json").read_text())["rows"]
    recorded = {(row["mps"], row["processes"]): [f"{us / 1e3:#.3g}" for us in row["us"].values()] for row in file}
    variants = "| `whole_field` | `per_neighbor` | `packed` |"
    found = rows(f"| Processes {variants} with MPS: {variants[2:]}")
    assert [int(processes) for processes, *_ in found] == [1, 2, 3, 4, 6, 8]
    for processes, *times in found:
        for mps, shown in ((False, times[:3]), (True, times[3:])):
            assert shown == recorded.get((mps, int(processes)), ["-"] * 3)
    original_way = {(row["mps"], row["processes"]) for row in file if row["fastest"] == "whole_field"}
    assert original_way == {(False, processes) for processes in (4, 5, 6, 7, 8)}


def test_fused_programs_are_what_was_recorded() -> None:
    titles = {
        "Wilson-Dslash": "wilson_dslash: {} sites",
        "conjugate gradients": "conjugate_gradient: {} float64, optimised",
        "convolution": "convolution: 1 images of {} float32",
    }
    results = [record["result"] for record in records("fused-versus-2xh100.jsonl")]
    found = rows("| Program | `direct` | `fused` | NVSHMEM | `direct` / `fused` |")
    assert len(found) == 6
    for program, *figures in found:
        name, _, size = program.partition(", ")
        (result,) = [r for r in results if r.get("title", "").startswith(titles[name].format(size))]
        us = {row["way"]: 1e6 * row["seconds"] for row in result["rows"]}
        wanted = [
            f"{us[way]:#.3g}".rstrip(".") if us[way] < 1e3 else three(us[way]) for way in ("direct", "fused", "nvshmem")
        ]
        assert figures == [*wanted, f"{us['direct'] / us['fused']:.2f}"]


def test_the_solver_is_as_short_as_the_page_says() -> None:
    lines = (ROOT / "apps/conjugate_gradient/conjugate_gradient.hpp").read_text().splitlines()
    assert f"have {len(lines)} lines" in PAGE and len(lines) < 200
