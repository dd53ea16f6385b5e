"""Computation and communication of a training step in time: what one hides of the other. Values only.

A GPU computes and communicates at once, each one thing after the other. That both slow each other down is not modelled.
"""

from __future__ import annotations

from collections.abc import Sequence


def bucketed(backward: float, buckets: Sequence[float], overlap: bool) -> float:
    """What gradients in buckets add to a backward pass that makes all of them at an even rate, in seconds.

    Bucket i of n is complete at (i + 1) / n of the pass; without `overlap` all wait for its end.
    """
    ended, count = 0.0, len(buckets)
    for number, seconds in enumerate(buckets, 1):
        made = backward * number / count if overlap else backward
        ended = max(ended, made) + seconds
    return max(0.0, ended - backward)


def sharded(layers: int, forward: float, backward: float, gather: float, scatter: float, overlap: bool) -> float:
    """Seconds of one micro-batch whose layers' parameters are gathered before each pass, and whose gradients are
    scattered after the backward one; `forward` and `backward` are of one layer.

    With `overlap` the parameters of the next layer are gathered while one is computed, and no others before that.
    """
    if not overlap:
        return layers * (forward + backward + 2 * gather + scatter)
    wire, ended, before = 0.0, 0.0, 0.0  # ends: of the wire, of the last layer, of the one before it
    for _ in range(layers):
        wire = max(wire, before) + gather
        before, ended = ended, max(ended, wire) + forward
    wire = max(wire, ended if layers == 1 else before) + gather
    for left in reversed(range(layers)):
        begun = max(ended, wire)
        if left:
            wire = max(wire, begun) + gather
        ended = begun + backward
        wire = max(wire, ended) + scatter
    return max(wire, ended)


def pipelined(stages: int, micro_batches: int, slot: float) -> float:
    """Seconds of 1F1B: a slot is a forward and a backward pass of one micro-batch in one stage."""
    return (micro_batches + stages - 1) * slot
