"""`--machine NAME` is the machine of this name, even if a file or folder of this name exists."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import made_up
import pytest

from waywiser.cli import run
from waywiser.results import recorded_machines
from waywiser.topology import load_topology

pytestmark = pytest.mark.slow
NAME, SMALL = "hse-a", "remote-t4"
SIMULATE = ["simulate", "latency", "--sizes", "8"]
VERBS = {
    "tune": ["tune", "--quick", "--results", SMALL],
    "measure": ["measure", "--quick", "--operations", "latency", "--results", SMALL],
    "plan": ["plan"],
    "explain": ["explain", "host0", "gpu0", "1M"],
    "explain --binding": ["explain", "--binding"],
    "report": ["report", "--no-pictures"],
    "apply": ["apply"],
    "topology": ["topology"],
    "place": ["place", "--gpus", "1"],
    "simulate": [*SIMULATE, "--pair", "host0>gpu0", "--path", "copy_engine"],
    "bench": ["bench", "latency", "--sizes", "8"],
}


def folder(path: Path) -> None:
    path.mkdir()


def other_machine(path: Path) -> None:
    path.write_text(load_topology("dgx-1v").to_json())


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("verb", ["measure", "apply", "explain --binding", "topology", "place", "simulate"])
def test_a_folder_of_that_name_changes_nothing(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder(Path(SMALL))
    assert run([*VERBS[verb], "--machine", SMALL]) == 0, capsys.readouterr().err


def test_twice_into_a_folder_of_that_name(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run([*VERBS["measure"], "--machine", SMALL]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("make", [folder, other_machine])
@pytest.mark.parametrize("verb", ["topology", "simulate"])
def test_the_answer_is_that_of_the_machine(
    verb: str, make: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["topology", "--format", "json"] if verb == "topology" else [*SIMULATE, "--json"]
    answers = []
    for _ in range(2):
        assert run([*arguments, "--machine", NAME]) == 0
        answers.append(json.loads(capsys.readouterr().out))
        shutil.rmtree(NAME, ignore_errors=True)
        if not Path(NAME).exists():
            make(Path(NAME))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_name_is_one_line_also_beside_a_file_of_that_name(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other_machine(Path("mine"))
    assert run([*VERBS[verb], "--machine", "mine"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'mine' is not a machine; a file is written with a slash or ends in .json, .xml or .txt" in line


@pytest.mark.parametrize("name", ["./mine", "mine.json"])
def test_what_looks_like_a_file_is_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    other_machine(Path(name))
    assert run(["topology", "--format", "json", "--machine", name]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "dgx-1v"


@pytest.mark.parametrize("verb", ["topology", "apply"])
def test_a_name_is_no_file(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder(Path(NAME))
    assert run([verb, "--from", NAME]) == 2
    assert "there is no such file; the machine of that name is --machine hse-a" in capsys.readouterr().err


def test_a_cluster_file_means_the_machine_too(capsys: pytest.CaptureFixture[str]) -> None:
    other_machine(Path(NAME))
    other_machine(Path("mine"))
    file = Path("cluster.yaml")
    file.write_text(f"nodes: 2 x {NAME}")
    assert run([*SIMULATE, "--cluster", str(file)]) == 0
    capsys.readouterr()
    file.write_text("nodes: 2 x mine")
    assert run([*SIMULATE, "--cluster", str(file)]) == 2
    assert "'mine' is not a machine" in capsys.readouterr().err


def test_a_folder_with_the_name_of_a_recorded_machine(capsys: pytest.CaptureFixture[str]) -> None:
    name = recorded_machines()[0]
    made_up.write(Path(name))
    assert run(["compare", name, f"./{name}", "--json"]) == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["changes"]


@pytest.mark.parametrize("arguments", [["compare", "no-such", "no-such"], ["calibrate", "no-such"]])
def test_a_profile_that_is_not_there(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    error = capsys.readouterr().err
    known = "recorded-4xh100, recorded-4xh200"
    assert f"no-such: there is no such profile or folder of results; recorded machines: {known}" in error
