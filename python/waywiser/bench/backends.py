"""The GPUs that a benchmark uses: those of this machine, virtual ones, or none."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser import _core
from waywiser.errors import InputError

BACKENDS = ("auto", "cuda", "host", "virtual_gpu")


def backend_for(asked: str, memory: Sequence[str]) -> str:
    """The back end that serves this memory. Raises InputError."""
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


def offload_backend(asked: str) -> str:
    """The GPUs of this machine; without them virtual ones, which are labelled."""
    if asked not in ("auto", "cuda", "virtual_gpu"):
        raise InputError("offload: write --backend auto|cuda|virtual_gpu")
    if asked == "auto":
        return "virtual_gpu" if _core.why_no_cuda() else "cuda"
    return asked


def coalescing_backend(asked: str, pairs: Sequence[str]) -> str:
    """Without --memory and without a GPU: the host."""
    if not pairs and asked in ("auto", "host"):
        return "host" if asked == "host" or _core.why_no_cuda() else "cuda"
    return backend_for(asked, ["host" if pair == "host>host" else pair for pair in pairs] or ["gpu"])
