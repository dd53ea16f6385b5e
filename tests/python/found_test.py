"""The line that `tune --quick` ends in, from made-up plans."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import made_up
import pytest
from fake_core import FakeCore
from verb_runs import Run

from waywiser.report.found import finding, found_line, size_word
from waywiser.results import Results, recorded
from waywiser.units import parse_bytes

Json = dict[str, Any]
ENDLESS = (1 << 63) - 1
SIZES = [4**power for power in range(12)]
# pair, mechanism, its parameters, first size, last size, ratio of the next best; 0: there is none
Row = tuple[str, str, dict[str, str], int, int, float]
HOST: Row = ("host0>host0", "host_copy", {"threads": "1"}, 1, ENDLESS, 9.0)
SMALL: Row = ("gpu0>host0", "courier", {}, 1, 32767, 3.52)
LARGE: Row = ("gpu0>host0", "copy_engine", {}, 32768, ENDLESS, 1.07)
ALWAYS: Row = ("gpu0>gpu1", "copy_engine", {}, 1, ENDLESS, 8.0)


def _row(row: Row, processes: int = 1, operation: str = "latency") -> Json:
    pair, mechanism, parameters, first, last, ratio = row
    source, destination = pair.split(">")
    chosen = made_up.label({"mechanism": mechanism, "parameters": parameters})
    ways = made_up.ways(chosen, "sm_copy" if ratio else "", ratio)
    made = made_up.message_row((source, destination), processes, (first, last), ways)
    expected = [{"bytes": size, "seconds": 1e-6} for size in SIZES if first <= size <= last]
    return {**made, "operation": operation, "expected": expected}


def _results(folder: Path, *rows: Json, **more: Any) -> Results:
    made_up.write(folder, 2)
    for name, changed in (("plan", {"rows": list(rows), **more}), ("profile", more)):
        file = folder / f"{name}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))
    return Results(folder)


def _found(folder: Path, *rows: Row) -> str:
    one = finding(_results(folder, *map(_row, rows)))
    assert one is not None
    return one.text


def test_the_size_at_which_the_path_changes(tmp_path: Path) -> None:
    assert _found(tmp_path, HOST, ALWAYS, SMALL, LARGE) == (
        "from gpu0 to host0 the fastest path changes at 32 KiB, from courier to copy_engine; "
        "the next best takes up to 3.52 times as long"
    )


def test_several_changes(tmp_path: Path) -> None:
    middle: Row = ("gpu0>host0", "sm_copy", {}, 32768, 65535, 1.01)
    large: Row = ("gpu0>host0", "copy_engine", {}, 65536, ENDLESS, 1.02)
    assert _found(tmp_path, (*SMALL[:5], 1.04), middle, large) == (
        "from gpu0 to host0 the fastest path changes 2 times, first at 32 KiB, from courier to sm_copy"
    )


def test_one_path_at_every_size(tmp_path: Path) -> None:
    assert _found(tmp_path / "a", HOST, (*ALWAYS[:5], 1.5)) == (
        "copy_engine is the fastest path from gpu0 to gpu1 at every size; the next best takes up to 1.50 times as long"
    )
    assert _found(tmp_path / "b", (*ALWAYS[:5], 0)) == "copy_engine is the fastest path from gpu0 to gpu1 at every size"


def test_parameters_are_named_if_they_are_all_that_changes(tmp_path: Path) -> None:
    rows = ((*HOST[:4], 1023, 1.2), ("host0>host0", "host_copy", {"threads": "2"}, 1024, ENDLESS, 2.0))
    assert _found(tmp_path, *rows).startswith(
        "from host0 to host0 the fastest path changes at 1 KiB, from host_copy(threads=1) to host_copy(threads=2); "
    )


def test_neighbours_that_differ_in_parameters_are_one_path(tmp_path: Path) -> None:
    first, second = (*SMALL[:4], 99, 3.0), (*SMALL[:2], {"slots": "2"}, 100, 32767, 2.0)
    assert "changes at 32 KiB, from courier to copy_engine" in _found(tmp_path, first, second, LARGE)


def test_only_latency_within_one_process_counts(tmp_path: Path) -> None:
    others = (_row(SMALL, 2), _row(LARGE, 2), _row(SMALL, operation="streaming"), _row(LARGE, operation="streaming"))
    assert finding(_results(tmp_path, *others)) is None
    assert found_line(Results(tmp_path)) == "found: no path to choose; next: waywiser doctor"


def test_the_next_commands_are_about_these_results(tmp_path: Path) -> None:
    line = found_line(_results(tmp_path, _row(SMALL), _row(LARGE)))
    assert "\n" not in line
    commands = line.partition("; next: ")[2].split(", waywiser ")
    assert commands[0] == f"waywiser explain gpu0 host0 256B --results {tmp_path} (why)"
    assert commands[1] == f"apply --results {tmp_path} (settings)"


@pytest.mark.parametrize(
    ("first", "last", "size"),
    [(1, 1, 1), (1, ENDLESS, 4096), (16, 1 << 20, 4096), (5000, ENDLESS, 262144), (33, 63, 33), (0, 0, 1)],
)
def test_the_next_command_has_a_size_in_the_middle_of_the_choice(
    first: int, last: int, size: int, tmp_path: Path
) -> None:
    one = finding(_results(tmp_path, _row((*SMALL[:3], first, last, 2.0))))
    assert one is not None and one.size == size and parse_bytes(size_word(size)) == size


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ({"simulated": True}, "found (Simulated: not a measurement): from gpu0"),
        ({"backend": "virtual_gpu"}, "found (Virtual GPUs: not a measurement of any GPU): from gpu0"),
    ],
)
def test_what_was_not_measured_is_labelled(kind: Json, label: str, tmp_path: Path) -> None:
    assert found_line(_results(tmp_path, _row(SMALL), _row(LARGE), **kind)).startswith(label)


def test_of_a_recorded_machine_the_command_explains_that_choice(run: Run) -> None:
    results = recorded("recorded-4xh200")
    one, line = finding(results), found_line(results)
    assert one is not None
    words = shlex.split(line.partition("; next: waywiser ")[2].partition(" (why)")[0])
    code, out, _ = run(*words, "--json")
    answer = json.loads(out)
    assert code == 0 and (answer["pair"], answer["bytes"]) == (">".join(one.pair), one.size)
    assert answer["chosen"] in one.text and answer["candidates"][1]["ratio"] > 1.05


@pytest.mark.parametrize("quick", [True, False])
def test_tune_ends_in_it_if_it_is_quick(quick: bool, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCore(gpus=0).install(monkeypatch)
    monkeypatch.setattr("waywiser.cli.tune._report", lambda *_: None)
    monkeypatch.setattr("waywiser.cli.tune.collectives_into", lambda *_: None)
    code, out, _ = run("tune", *["--quick"] * quick, "--results", str(tmp_path))
    assert code == 0
    assert (out.splitlines()[-1] == found_line(Results(tmp_path))) == quick
    assert ("found: from host0 to host0 the fastest path changes" in out) == quick
