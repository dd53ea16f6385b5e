"""Lines of progress without a terminal."""

import pytest

from waywiser.progress import lines


def test_a_line_for_each_tenth_and_after_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    show = lines("measuring", lambda: now)
    for second in range(100):
        now = float(second)
        show(min(second, 42), 100, 240.0 - second, "gpu0>gpu1 [red]latency[/] 4K")
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "measuring: step 0 of 100, at most 4:00 left  gpu0>gpu1 [red]latency[/] 4K"
    assert "at most 3:20 left" in said[4]
    steps = [int(line.split()[2]) for line in said]
    assert steps == [0, 10, 20, 30, 40, 42, 42, 42, 42, 42]


def test_without_a_budget_the_steps_so_far_tell_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    show = lines("simulating", lambda: now)
    for done, now in ((0, 0.0), (20, 30.0), (100, 140.0)):  # noqa: B007
        show(done, 100, 0.0, "ring")
    assert capsys.readouterr().err.splitlines() == [
        "simulating: step 0 of 100  ring",
        "simulating: step 20 of 100, about 2:00 left  ring",
        "simulating: step 100 of 100, at most 0:00 left  ring",
    ]
