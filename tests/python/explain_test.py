"""`waywiser explain` of what a group or a kernel does: row, cost and reasons, at the size that is asked."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import waywiser
from waywiser.cli import run

MACHINE = "recorded-4xh100"
PROFILE = Path(waywiser.__file__).parent / "machines" / MACHINE / "profile.json.gz"


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["explain", *words, "--machine", MACHINE, "--json"]) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def measured(operation: str, ranks: int, size: int, memory: str = "gpu") -> dict[str, float]:
    """The seconds of each way at a size that was measured."""
    with gzip.open(PROFILE) as file:
        profile = json.load(file)
    mine = [one for one in profile["collectives"] if one["operation"] == operation]
    mine = [one for one in mine if (one["ranks"], one["memory"]) == (ranks, memory)]
    return {one["way"]: point["seconds"] for one in mine for point in one["points"] if point["bytes"] == size}


@pytest.mark.parametrize("size", [8, 1024, 4096])
def test_a_put_of_a_kernel(size: int, capsys: pytest.CaptureFixture[str]) -> None:
    answer, times = asked(capsys, "put", str(size), "--from", "kernel"), measured("put_message", 2, size)
    chosen, second = sorted(times, key=lambda way: times[way])[:2]
    assert answer["chosen"] == chosen and answer["seconds"] == pytest.approx(times[chosen])
    assert answer["row"]["from_bytes"] <= size <= answer["row"]["to_bytes"]
    assert answer["runner_up"] == {"way": second, "ratio": pytest.approx(times[second] / times[chosen])}
    passed = {one["way"]: one["why"] for one in answer["candidates"]}
    assert set(passed) == {"LL", "LL128", "stores", "bulk"} and passed.pop(chosen) == "" and all(passed.values())
    assert any("NVLink" in note for note in answer["notes"])


@pytest.mark.parametrize(
    ("words", "ranks", "sizes"),
    [
        (("all_reduce", "gpu"), 4, (8, 1024)),
        (("all_reduce", "gpu"), 4, (8192, 65536, 262144)),  # of one row
        (("broadcast", "gpu"), 2, (8, 65536)),
        (("all_reduce", "host"), 2, (8, 1024)),
    ],
)
def test_the_reason_is_that_of_the_size(
    words: tuple[str, str], ranks: int, sizes: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    for size in sizes:
        answer = asked(capsys, *words, str(size), "-n", str(ranks))
        times, text = measured(words[0], ranks, size, words[1]), f"{size // 1024} KiB" if size >= 1024 else f"{size} B"
        others = sorted((way for way in times if way != answer["chosen"]), key=lambda way: times[way])
        ratio = times[others[0]] / times[answer["chosen"]]
        assert f" at {text}" in answer["why"] and others[0] in answer["why"], answer["why"]
        if answer["why"].startswith("the fastest"):
            assert f" {ratio:.2f} times as long" in answer["why"]
        else:
            assert answer["why"].startswith(("equal to ", "within ")), answer["why"]


def test_beyond_the_measured_sizes_the_row_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    answer = asked(capsys, "all_reduce", "gpu", "20M", "-n", "4")
    assert answer["chosen"] == "two_shot" and answer["seconds"] is None
    assert answer["why"].startswith("20 MiB was not measured, but the row has it; for the row, ")
    nothing = asked(capsys, "all_reduce", "gpu", "1G", "-n", "4")
    assert nothing["chosen"] == "" and nothing["row"] is None
    assert nothing["why"] == "the plan has no row for 1 GiB: too far from the sizes that were measured"


def test_the_table_names_row_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "put", "4K", "--from", "kernel", "--machine", MACHINE]) == 0
    told = capsys.readouterr().out
    assert told.startswith("put_message of 4 KiB, from a block of a kernel to another GPU on ")
    assert "* LL " in told and "the fastest: LL128 takes " in told and "row of the plan: " in told
    assert "A put without a message: by stores" in " ".join(told.split())


def test_times_of_virtual_gpus_are_labelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gzip.open(PROFILE) as file:
        profile = json.load(file)
    (tmp_path / "profile.json").write_text(json.dumps(profile | {"backend": "virtual_gpu"}))
    words = ["explain", "put", "8", "--from", "kernel", "--results", str(tmp_path)]
    assert run(words) == 0
    assert capsys.readouterr().out.startswith("VIRTUAL GPUS: NOT A MEASUREMENT OF ANY GPU\n")
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["backend"] == "virtual_gpu"


def test_what_was_never_measured_says_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gzip.open(PROFILE) as file:
        profile = json.load(file)
    (tmp_path / "profile.json").write_text(json.dumps(profile | {"collectives": []}))
    assert run(["explain", "put", "8", "--from", "kernel", "--results", str(tmp_path)]) == 2
    assert "`waywiser tune` measures it between two GPUs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("put", "8"), "write put SIZE --from kernel"),
        (("get", "8", "--from", "kernel"), "write put SIZE --from kernel"),
        (("host0", "gpu0", "8", "--from", "kernel"), "write put SIZE --from kernel"),
        (("put", "host", "8", "--from", "kernel"), "write put SIZE --from kernel"),
        (("put", "8", "--from", "card"), "--from 'card': write host or kernel"),
        (("put", "--from", "kernel"), "which transfer?"),
        (("put", "big", "--from", "kernel"), "'big' is not a size"),
        (("put", "8", "--from", "kernel", "--steps"), "--steps shows the way of one transfer"),
        (("put", "8", "--from", "kernel", "-n", "3"), "put_message of 3 ranks with arrays in gpu memory: not measured"),
    ],
)
def test_what_does_not_fit_is_one_line(words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *words, "--machine", MACHINE]) == 2
    error = capsys.readouterr().err
    assert why in error and len(error.splitlines()) == 1


def test_pieces_of_a_shuffle_are_messages(capsys: pytest.CaptureFixture[str]) -> None:
    unmeasured = "message of 2 ranks with arrays in host memory: not measured here"
    for words in (["shuffle"], ["shuffle", "host", "64K"]):
        assert run(["explain", *words, "--machine", MACHINE]) == 2
        assert unmeasured in capsys.readouterr().err
    for words in (["shuffle", "gpu"], ["shuffle", "--from", "kernel"]):
        assert run(["explain", *words, "--machine", MACHINE]) == 2
        assert (
            "explain shuffle [host [SIZE]]: pieces between GPUs are explained by gpu0 gpu1 SIZE"
            in capsys.readouterr().err
        )
