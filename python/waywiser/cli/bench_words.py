"""What `waywiser bench` takes in its options, alone and beside other libraries."""

from __future__ import annotations

import re
from collections.abc import Sequence

from waywiser.errors import InputError

BACKENDS = ("auto", "cuda", "host", "virtual_gpu")


def words_in(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if word]


def among(words: list[str], known: tuple[str, ...], option: str) -> list[str]:
    for word in words:
        if word not in known:
            raise InputError(f"{option} {word!r}: write some of {','.join(known)}")
    if not words:
        raise InputError(f"{option}: write some of {','.join(known)}")
    return list(dict.fromkeys(words))


def backend_for(asked: str, memory: Sequence[str]) -> str:
    """The back end that serves this memory. Raises InputError."""
    from waywiser import _core

    if all(place == "host" for place in memory):
        return "host"
    if asked == "auto":
        why = _core.why_no_cuda()
        if why:
            raise InputError(f"--memory {','.join(memory)}: {why}; --backend virtual_gpu takes virtual GPUs")
        return "cuda"
    if asked == "host":
        raise InputError("--backend host has no GPU memory")
    return asked
