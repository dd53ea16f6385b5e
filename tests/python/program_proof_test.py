"""`waywiser verify -- PROGRAM`: a person's own program with the defaults and the proved settings."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from waywiser import _core
from waywiser.apply.installed import Installed
from waywiser.apply.setting import Setting, Settings
from waywiser.apply.store import keep
from waywiser.apply.store import kept as stored
from waywiser.cli import run
from waywiser.prove import try_option

NAME, VALUE = "UCX_RNDV_THRESH", "2"
# Twice as fast with the setting, or half as fast, as the number is read.
RATE = ["sh", "-c", 'echo "size 8"; echo "rate: ${UCX_RNDV_THRESH:-1}"']


@pytest.fixture
def results(tmp_path: Path) -> Path:
    one = Setting("ucx", NAME, VALUE, "", "made up", NAME, proof="won")
    other = Setting("ucx", "UCX_TLS", "x", "", "made up", "UCX_TLS")
    keep(tmp_path, Settings(_core.discover().fingerprint, "here", settings=(one, other)))
    return tmp_path


def verify(results: Path, *words: str, rounds: int = 4, record: bool = False) -> int:
    recorded = ["--no-record"] if "--" in words and not record else []
    return run(["verify", "--results", str(results), "--rounds", str(rounds), *recorded, *words])


def answer(results: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert verify(results, "--json", *words) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_program_that_gains_is_told_so(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(results, capsys, "--metric", r"rate: (\S+)", "--more-is-better", "--", *RATE)
    assert found["variables"] == {NAME: VALUE}, "what is not proved is not tried"
    assert (found["verdict"], found["gain"], found["noise"]) == ("faster", 2.0, 1.0)
    runs = {"default": [1.0] * 4, "proved settings": [2.0] * 4, "the same again": [1.0] * 4}
    assert found["runs"] == runs and found["command"] == RATE
    kept = json.loads((results / "programs/sh.json").read_text())
    assert kept == found, "for report --savings"


def test_a_program_that_loses_is_told_so(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(results, capsys, "--metric", r"rate: (\S+)", "--", *RATE)
    assert (found["verdict"], found["gain"]) == ("slower", 0.5)
    assert verify(results, "--metric", r"rate: (\S+)", "--", *RATE) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1].split() == ["proved", "settings", "2"]
    assert told[3] == "proved settings: slower; gain 0.500 x, noise 1.000 x"


@pytest.mark.parametrize(("is_rate", "kept"), [(True, True), (False, False)])
def test_a_setting_that_no_benchmark_reaches_is_proved_by_a_program(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_rate: bool,
    kept: bool,
) -> None:
    """Such as reductions in the switches, which need several nodes: the program starts its own ranks."""
    one = "NCCL_COLLNET_ENABLE"
    monkeypatch.setattr(try_option, "installed", lambda *_: Installed("2.28.9", {one: "0"}))
    program = ["sh", "-c", f'echo "rate: $((1 + ${{{one}:-0}}))"']
    rate = ["--metric", r"rate: (\S+)", *(["--more-is-better"] if is_rate else [])]
    assert verify(tmp_path, "--try", f"{one}=1", "--json", *rate, "--", *program) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["variables"] == {one: "1"} and ("kept as proved" in said.err) == kept
    settings = stored(tmp_path, _core.discover().fingerprint)
    found = [(each.name, each.value, each.proof) for each in settings.settings] if settings else []
    assert found == ([(one, "1", "2.00 x in sh")] if kept else [])
    assert verify(tmp_path, "--try", "LD_PRELOAD=x", "--", *program) == 2
    assert "with PROGRAM write OMPI_MCA_NAME=VALUE" in capsys.readouterr().err


def test_a_run_that_is_watched_and_fails_costs_no_verdict(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = ["sh", "-c", '[ -z "$NCCL_DEBUG_FILE" ] && echo "rate: ${UCX_RNDV_THRESH:-1}"']
    words = ["--metric", r"rate: (\S+)", "--more-is-better", "--json", "--", *program]
    assert verify(results, *words, record=True) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["verdict"], found["sent"]) == ("faster", {})
    assert "default: what it sends is not known: sh failed (1)" in said.err


def test_there_is_no_verdict_inside_the_noise(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = tmp_path / "count"
    program = f'echo . >> {count}; n=$(wc -l < {count}); echo "took $((10 + n % 5))"'  # other numbers in each run
    found = answer(results, capsys, "--metric", r"took (\d+)", "--", "sh", "-c", program)
    assert found["verdict"] == "no difference beyond the noise"


def test_without_a_metric_the_time_decides(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(results, capsys, "--", "sh", "-c", "exit 0")
    runs = found["runs"]
    assert isinstance(runs, dict) and all(seconds > 0 for one in runs.values() for seconds in one)
    assert found["metric"] == "wall-clock"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--metric", "rate", "--", *RATE], "needs one group"),
        (["--metric", "(", "--", *RATE], "--metric '('"),
        (["--metric", r"nothing (\d)", "--", *RATE], "printed no number"),
        (["--metric", r"(size)", "--", *RATE], "printed no number"),
        (["--metric", r"-(0)", "--", "echo", "-0"], "must be a positive number"),
        (["--more-is-better", "--", *RATE], "--more-is-better is for --metric"),
        (["--with", "ucx", "--", *RATE], "leave out --with"),
        (["--name", "../x", "--", *RATE], "--name '../x': at most 60 letters"),
        (["--name", "x", "--with", "ucx"], "are for PROGRAM"),
        (["--metric", "(x)", "--with", "ucx"], "are for PROGRAM"),
        (["--", "no-such-program"], "there is no program 'no-such-program'"),
        (["--", "sh", "-c", "echo why; exit 3"], "failed (3): why"),
        (["--", "false"], "false failed (1)\n"),
        ([], "write --with"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    results: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert verify(results, *words) == 2
    assert says in capsys.readouterr().err


def test_nothing_proved_nothing_to_try(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(tmp_path, "--", sys.executable, "-c", "") == 2
    assert "no setting is proved for this machine" in capsys.readouterr().err
