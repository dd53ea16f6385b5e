"""`waywiser explain --steps`: what happens on the way."""

from __future__ import annotations

import json

import pytest

from waywiser.cli import run


def candidates(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, list[dict[str, object]]]:
    assert run(["explain", *words, "--steps", "--json"]) == 0
    return {one["label"]: one["steps"] for one in json.loads(capsys.readouterr().out)["candidates"]}


def test_each_candidate_has_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    found = candidates(capsys, "gpu0", "gpu1", "1M", "--machine", "recorded-4xh200")
    assert len(found) > 10
    straight = next(steps for label, steps in found.items() if label.startswith("copy_engine"))
    assert [step["who"] for step in straight][-1].startswith("a copy engine of gpu")  # type: ignore[attr-defined]
    assert straight[-1]["from"], straight[-1]["to"] == ("gpu0", "gpu1")
    assert straight[-1]["over"] == ["gpu0", "nvswitch0", "gpu1"] or straight[-1]["over"] == ["gpu0", "gpu1"]
    pageable = next(steps for label, steps in found.items() if "variant=pageable" in label)
    assert len(pageable) > len(straight)
    assert "a pinned buffer of the driver in host0" in [step["to"] for step in pageable]


def test_the_way_through_the_host_has_more_steps_than_that_of_the_card(capsys: pytest.CaptureFixture[str]) -> None:
    found = candidates(capsys, "gpu0", "hse-a:gpu0", "64K", "--machine", "hse-a")
    by_card = {len(steps) for label, steps in found.items() if "gdr=on" in label}
    by_host = {len(steps) for label, steps in found.items() if "ucx_staged" in label and "variant=pageable" in label}
    assert by_card == {5} and by_host == {11}


def test_the_table_shows_the_chosen_path_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "host0", "gpu0", "64K", "--machine", "recorded-4xh200", "--steps"]) == 0
    shown = capsys.readouterr().out
    first = next(line for line in shown.splitlines() if " step" in line and ": " in line)
    assert first.endswith(", the chosen path")
    assert "Steps of the others" in shown


@pytest.mark.parametrize("words", [["all_reduce", "gpu", "64K"], ["halo"], ["--binding"]])
def test_what_is_no_transfer_has_no_steps(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *words, "--machine", "recorded-4xh200", "--steps"]) == 2
    error = capsys.readouterr().err
    assert "--steps shows the way of one transfer" in error and len(error.splitlines()) == 1
