"""What a site has set today, and which messages its jobs send: what a gain is against, and how sizes weigh in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from waywiser.errors import InputError
from waywiser.units import format_bytes, parse_bytes


@dataclass(frozen=True)
class SiteUse:
    """`today`: variables and their values; empty: the libraries' defaults. `messages`: size -> how many, or in what
    proportion; empty: all sizes that were timed weigh alike."""

    today: Mapping[str, str] = field(default_factory=dict)
    messages: Mapping[int, float] = field(default_factory=dict)

    @property
    def told(self) -> bool:
        """Whether anything is known of the site."""
        return bool(self.today or self.messages)

    def lines(self) -> list[str]:
        """What a gain between nodes is against, for people."""
        before = " ".join(f"{name}={value}" for name, value in self.today.items()) or "the defaults"
        sizes = ", ".join(format_bytes(size) for size in sorted(self.messages))
        weighed = f", by the messages of {sizes} that the jobs send" if sizes else ""
        return [f"gain between nodes: against {before}{weighed}"] if self.told else []


def today_told(text: str) -> dict[str, str]:
    """ "UCX_IB_GPU_DIRECT_RDMA=n UCX_TLS=^gdr_copy". Raises InputError."""
    found = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if not name.startswith("UCX_") or not value:
            raise InputError(f"--today {word!r}: write NAME=VALUE of UCX's variables, as UCX_IB_GPU_DIRECT_RDMA=n")
        found[name] = value
    return found


def messages_told(text: str) -> dict[int, float]:
    """ "8=1e6,1M=2000": size and how many. Raises InputError."""
    found: dict[int, float] = {}
    for word in filter(None, text.split(",")):
        size, _, count = word.partition("=")
        try:
            bytes_, number = parse_bytes(size), float(count)
        except (InputError, ValueError):
            bytes_, number = 0, 0.0
        if bytes_ in found or bytes_ < 1 or not 0 < number < float("inf"):
            raise InputError(f"--messages {word!r}: write SIZE=COUNT, each size once, as 8=1e6,1M=2000")
        found[bytes_] = number
    return found
