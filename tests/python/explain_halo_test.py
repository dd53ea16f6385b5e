"""`waywiser explain halo --shape ... --fields ...`: the row of one exchange, and the estimate beside it."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from halo_domain import DOMAIN
from rank_jobs import NO_PLAN, runtime_folder
from rank_jobs import run as run_ranks

import waywiser
from waywiser import _core
from waywiser.cli import run

__all__ = ["runtime_folder"]

MACHINE = Path(waywiser.__file__).parent / "machines" / "recorded-4xh100"
ASKED = ["halo", "--shape", "64x48", "--fields", "float64,3:float32", "-n", "2"]


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["explain", *words, "--json"]) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


@pytest.mark.parametrize("gpus", [False, True])
def test_the_row_that_a_program_has_added(gpus: bool, capsys: pytest.CaptureFixture[str]) -> None:
    code = f"""
    gpus = ww.virtual_gpus(2) if {gpus} else None
    group = ww.join(gpus=gpus)
    grid = ww.GridPartition(group, (64, 48), ghost=(2, 1), periodic=(False, True), parts=(1, 2))
    fields = [np.zeros(grid.local_shape), np.zeros((3, *grid.local_shape), np.float32)]
    if gpus: fields = [gpus.array(each, group.rank) for each in fields]
    halo = ww.HaloExchange(group, grid, [fields[0], ww.ComponentsFirst(fields[1])])
    times = halo.tune(0.001, file="plan.json")
    if group.rank == 0: print(halo.variant, min(time for time in times.values() if time))
    group.barrier()
    """
    ended, (line,), errors = run_ranks(2, code, program=DOMAIN)
    assert ended == 0 and errors in ("", NO_PLAN), errors
    memory = ["--memory", "gpu"] if gpus else []
    more = ["--ghost", "2,1", "--periodic", "0,1", "--parts", "1x2", *memory, "--results", "."]
    answer = answered(capsys, *ASKED, *more)
    variant, seconds = line.split()
    assert answer["measured"] and answer["chosen"].partition("(")[0] == variant
    assert answer["seconds"] == pytest.approx(float(seconds)) and "interleaved rounds" in answer["why"]
    assert answer["runner_up"]["ratio"] >= 1 and answer["ways"][0]["way"] == answer["chosen"]
    assert {one["way"] for one in answer["ways"]} >= {"whole_field", "per_neighbor", "packed"}
    assert answer["estimate"] == {"chosen": None, "wrong": None, "ratio": None}  # no profile
    other = answered(capsys, *ASKED, *more, "--ghost", "1")
    assert not other["measured"] and other["shape"] != answer["shape"]
    assert run(["explain", *ASKED, *more]) == 0
    told = capsys.readouterr().out
    assert told.startswith("halo exchange of 64x48 cells, 2 ranks (1x2), ") and "no estimate: " in told


@pytest.mark.parametrize("gpus", [False, True])
def test_what_it_says_is_moved_is_what_is_counted(gpus: bool) -> None:
    code = f"""
    from waywiser import _core
    gpus = ww.virtual_gpus(4) if {gpus} else None
    group = ww.join(gpus=gpus)
    grid = ww.GridPartition(group, (7, 9, 4), ghost=(2, 1, 1), periodic=(False, True, True), parts=(2, 2, 1))
    fields = [np.zeros(grid.local_shape), np.zeros((3, *grid.local_shape), np.float32)]
    if gpus: fields = [gpus.array(each, group.rank) for each in fields]
    halo = ww.HaloExchange(group, grid, [fields[0], ww.ComponentsFirst(fields[1])])
    asked = _core.even_grid((7, 9, 4), (2, 1, 1), (False, True, True), (2, 2, 1))
    described = [("float64", 1, False), ("float32", 3, True)]
    for name, messages, out, back in _core.halo_work(asked, described, group.rank, gpus is not None):
        try: halo.use(name)
        except ww.UnavailableError: continue
        halo.exchange()
        counts = halo.counts(name)
        assert (counts["messages"], counts["message_bytes"]) == (len(messages), sum(messages)), name
        if gpus: assert (counts["bus_copies"], counts["bus_bytes"]) == (len(out + back), sum(out + back)), name
    group.barrier()
    """
    ended, lines, errors = run_ranks(4, code, program=DOMAIN)
    assert (ended, lines) == (0, []) and errors in ("", NO_PLAN), errors


def with_row(folder: Path, ways: dict[str, float]) -> None:
    """A folder with the profile of a recorded machine, and a plan with a made-up row for ASKED on two GPUs."""
    shutil.copy(MACHINE / "profile.json.gz", folder)
    (folder / "plan.json").unlink(missing_ok=True)
    profile = json.loads(gzip.decompress((MACHINE / "profile.json.gz").read_bytes()))
    grid = _core.even_grid([64, 48], [1, 1], [False, False], [2, 1])
    described = [("float64", 1, False), ("float32", 3, True)]
    shape = _core.halo_shape(grid, described, ["cuda gpu0", "cuda gpu1"], profile["fingerprint"])
    row = {"operation": "halo", "memory": "gpu", "ranks": 2, "shape": shape, "from_bytes": 0, "to_bytes": (1 << 63) - 1}
    row |= {"ways": [{"way": way, "ratio": ratio} for way, ratio in ways.items()], "why": "made up"}
    row |= {"expected": [{"bytes": 960, "seconds": 1e-5}]}
    head = {"schema": "waywiser.plan", "version": 3, "machine": "made up", "backend": "cuda", "simulated": False}
    head |= {"fingerprint": profile["fingerprint"], "other_nodes": []}
    (folder / "plan.json").write_text(json.dumps({**head, "rows": [row]}))


def test_a_wrong_estimate_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*ASKED, "--memory", "gpu", "--results", str(tmp_path)]
    with_row(tmp_path, {"whole_field": 1, "packed": 1.5, "per_neighbor": 2, "direct": 2.5})
    answer = answered(capsys, *words)
    estimates = {one["way"]: one["estimate"] for one in answer["ways"]}
    assert all(each > 0 for each in estimates.values())
    able = [one["way"] for one in answer["ways"] if one["ratio"]]
    guess = min(able, key=lambda way: estimates[way])
    ratio = next(one["ratio"] for one in answer["ways"] if one["way"] == guess)
    assert guess != "whole_field" and answer["estimate"] == {"chosen": guess, "wrong": True, "ratio": ratio}
    assert answer["chosen"] == "whole_field" and answer["runner_up"] == {"way": "packed", "ratio": 1.5}
    assert run(["explain", *words]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"WRONG ESTIMATE: it would choose {guess}, which takes {ratio:.2f} times as long as measured" in told
    with_row(tmp_path, {guess: 1, "packed": 1.5, "mixed(other=packed,5a32=direct)": 2})
    answer = answered(capsys, *words)
    assert answer["estimate"]["wrong"] is False and answer["ways"][-1]["way"] != guess
    assert run(["explain", *words]) == 0
    assert "the estimate would choose the same" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "chosen", "why"),
    [
        (["--memory", "host"], "packed", "host memory"),
        (["--memory", "gpu"], "direct", "kernels reach the neighbours' memory"),
        (["--memory", "gpu", "-n", "8"], "packed", "ranks share a GPU"),
    ],
)
def test_what_was_not_measured_has_the_default_and_an_estimate(
    words: list[str], chosen: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = answered(capsys, *ASKED, *words, "--machine", "recorded-4xh100")
    assert not answer["measured"] and answer["chosen"] == chosen and why in answer["why"]
    assert answer["seconds"] is None and answer["estimate"]["chosen"] and answer["estimate"]["wrong"] is None
    assert all(one["estimate"] > 0 and one["messages"] > 0 for one in answer["ways"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["halo", "--shape", "64x48"], "write halo --shape LIST --fields LIST"),
        (["halo", "--ghost", "2"], "write halo --shape LIST --fields LIST"),
        (["host0", "gpu0", "8", "--shape", "6", "--fields", "int8"], "write halo --shape LIST --fields LIST"),
        ([*ASKED, "--shape", "64xlong"], "--shape '64xlong': write a whole number for each dimension"),
        ([*ASKED, "--shape", "2x2x2x2x2"], "a grid has 1 to 4 dimensions"),
        ([*ASKED, "--fields", "float64,"], "--fields '': write types such as"),
        ([*ASKED, "--fields", "float63"], "float63"),
        ([*ASKED, "--fields", "2:float64:2"], "--fields '2:float64:2': write types such as"),
        ([*ASKED, "--fields", "float64:0"], "at least one component"),
        ([*ASKED, "--parts", "2x2"], "--parts 2x2: 4 boxes for 2 ranks"),
        ([*ASKED, "--ghost", "1,1,1"], "--ghost 1,1,1: write one number, or one for each of 2 dimensions"),
        ([*ASKED, "--ghost", "49"], "--ghost 49: wider than the whole grid"),
        ([*ASKED, "--memory", "disk"], "--memory 'disk': write host or gpu"),
        ([*ASKED, "-n", "300"], "-n 300: a halo exchange is explained for up to 256 ranks"),
    ],
)
def test_what_does_not_fit_is_one_line(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *words, "--machine", "recorded-4xh100"]) == 2
    error = capsys.readouterr().err
    assert why in error and len(error.splitlines()) == 1


def test_a_folder_without_anything_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *ASKED, "--results", str(tmp_path)]) == 2
    assert "`waywiser tune` makes them" in capsys.readouterr().err
