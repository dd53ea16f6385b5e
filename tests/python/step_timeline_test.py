"""What hides what in a training step: the timelines alone, by laws and by formulas of their own."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.simulator.step_timeline import (
    COMPUTE,
    WIRE,
    Beside,
    Layer,
    Task,
    Tasks,
    bucketed,
    end_of,
    pipelined,
    sharded,
    turns_of,
    two_lanes,
)

times = st.floats(0, 10)
slower = st.floats(1, 3)
SOME = settings(derandomize=True, deadline=None, database=None, max_examples=60)
CLOSE = 1e-9


def took(tasks: Tasks, slowdown: float = 1.0) -> float:
    return end_of(two_lanes(*tasks, Beside(slowdown)))


@given(times, st.lists(times, min_size=1, max_size=8), slower)
@SOME
def test_buckets_are_never_slower_with_overlap(backward: float, buckets: list[float], slowdown: float) -> None:
    hidden, exposed = (took(bucketed(backward, buckets, overlap)) - backward for overlap in (True, False))
    assert max(buckets[-1], sum(buckets) - backward) - CLOSE <= hidden <= exposed + CLOSE
    assert exposed == pytest.approx(sum(buckets), abs=CLOSE)
    slow = took(bucketed(backward, buckets, True), slowdown) - backward
    # What a second of communication takes from computation is at most 1 - 1 / slowdown of it.
    assert hidden - CLOSE <= slow <= hidden + sum(buckets) * (1 - 1 / slowdown) + CLOSE


def test_a_slowdown_is_of_the_time_in_which_both_run() -> None:
    """10 s of computation in two halves; the bucket of the first one takes 4 s, in which 2 s of work are done."""
    spans = two_lanes(*bucketed(10, [4, 1], True), Beside(2))
    assert [(span.lane, span.end) for span in spans] == [(COMPUTE, 5), (WIRE, 9), (COMPUTE, 12), (WIRE, 13)]


@given(st.integers(1, 6), times, times, times, times)
@SOME
def test_sharded_layers_are_never_slower_with_overlap(
    layers: int, forward: float, backward: float, gather: float, scatter: float
) -> None:
    one = Layer(forward, backward, gather, scatter)
    both = [took(sharded(layers, one, overlap)) for overlap in (True, False)]
    assert max(layers * (forward + backward), layers * (2 * gather + scatter)) - CLOSE <= both[0] <= both[1] + CLOSE
    assert both[1] == pytest.approx(layers * (forward + backward + 2 * gather + scatter), abs=CLOSE)
    assert took(sharded(layers, Layer(forward, backward, 0, 0), True)) == pytest.approx(layers * (forward + backward))
    assert both[0] <= took(sharded(layers, one._replace(gather=2 * gather), True)) + CLOSE


def test_the_gradients_of_a_layer_leave_while_the_next_one_is_computed() -> None:
    """They waited for its parameters, and the next backward pass for them: 12 s in place of 9."""
    assert took(sharded(4, Layer(0, 2, 0, 1), True)) == 9


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), times, times)
@SOME
def test_a_bubble_is_a_part_of_a_stage_less_one_of_the_micro_batches(
    stages: int, groups: int, chunks: int, forward: float, backward: float
) -> None:
    """The formula beside the passes in their order, each after those that it needs."""
    micro_batches = groups * stages
    begun = turns_of(stages, micro_batches, chunks, forward / chunks, backward / chunks)
    assert len(begun) == 2 * stages * micro_batches * chunks
    end = max(begin + (backward if turn.backward else forward) / chunks for turn, begin in begun.items())
    assert end == pytest.approx(pipelined(stages, micro_batches, forward + backward, chunks), abs=CLOSE)


def test_a_stage_does_one_pass_after_the_other() -> None:
    begun = turns_of(4, 8, 2, 1.0, 2.0)
    for stage in range(4):
        passes = sorted((begin, 2.0 if turn.backward else 1.0) for turn, begin in begun.items() if turn.stage == stage)
        assert all(begin + took <= after + CLOSE for (begin, took), (after, _) in itertools.pairwise(passes))


def test_tasks_that_wait_for_each_other_are_an_error() -> None:
    with pytest.raises(ValueError, match="wait for each other"):
        two_lanes([Task("one", 1, wire=1)], [Task("other", 1, compute=1)])
