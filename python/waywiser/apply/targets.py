"""What `--for` asks: libraries, and a purpose."""

from __future__ import annotations

from waywiser.apply.node_switches import PURPOSES
from waywiser.apply.setting import TARGETS
from waywiser.errors import InputError


def wanted_in(text: str) -> tuple[tuple[str, ...], str]:
    """ "ucx,nccl,latency" -> the two libraries (all if none is named) and the purpose. Raises InputError."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if word not in (*TARGETS, *PURPOSES):
            raise InputError(f"--for {word!r}: write some of {', '.join(TARGETS)} and one of {', '.join(PURPOSES)}")
    purposes = [word for word in words if word in PURPOSES]
    if len(purposes) > 1:
        raise InputError(f"--for {text}: write one of {', '.join(PURPOSES)}")
    return tuple(word for word in words if word in TARGETS) or TARGETS, purposes[0] if purposes else "mixed"
