"""`--watch`: finds the paths that the bytes of a run really took, from counters before and after it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from waywiser.files import write_text_atomically
from waywiser.monitor.counters import KIND_NAMES, LINKS, NVLINK, RDMA, Sample, fresh, moved_between, read_counters
from waywiser.progress import say
from waywiser.units import format_bytes

FILE = "watch.json"
_NOTICED = 1 << 20  # bytes: less is background traffic
# Path that a run needs -> kind of counter that must have moved.
_SHOWN_BY = {"nvlink": NVLINK, "fabric": NVLINK, "gdr": RDMA, "rdma": RDMA, "roce": RDMA}


@dataclass(frozen=True)
class Watched:
    """Bytes by kind of path, and the wanted paths that carried nothing."""

    seconds: float
    nodes: int
    moved: dict[str, int]
    fell_back: tuple[str, ...]
    not_counted: tuple[str, ...]
    host: str = ""
    wanted: int = 0  # wanted paths that counters can show

    @property
    def roads(self) -> list[str]:
        """The paths that carried more than background traffic."""
        return [kind for kind in LINKS if self.moved.get(kind, 0) >= _NOTICED]

    def lines(self) -> list[str]:
        """For people."""
        told = [f"{KIND_NAMES[kind]} {format_bytes(count)}" for kind, count in self.moved.items() if count]
        on = f" on {self.host}" if self.nodes > 1 and self.host else ""
        lines = [f"watched{on} for {self.seconds:.1f} s: {', '.join(told) or 'no counter moved'}"]
        if self.fell_back:
            seen = [kind for kind in self.roads if kind not in {_SHOWN_BY[road] for road in self.fell_back}]
            instead = " and ".join(f"{format_bytes(self.moved[kind])} by {KIND_NAMES[kind]}" for kind in seen)
            lines.append(
                f"{len(self.fell_back)} of {self.wanted} wanted paths carried nothing: "
                f"{', '.join(self.fell_back)}; instead: {instead or 'nothing'}"
            )
        return lines + [f"{road} is not visible in counters" for road in self.not_counted]

    def to_json(self) -> str:
        """For `waywiser doctor` (D37, D43)."""
        body = {"seconds": self.seconds, "nodes": self.nodes, "moved": self.moved, "roads": self.roads}
        nic = {"nic_bytes": self.moved.get(RDMA, 0), "fell_back": list(self.fell_back)}
        return json.dumps({"schema": "waywiser.watch", "version": 1, **body, **nic}, indent=1)


def watched(
    before: Sample, after: Sample, seconds: float, wanted: Sequence[str], nodes: int = 1, host: str = ""
) -> Watched:
    """The result of comparing two samples."""
    moved = moved_between(before, after)
    seen = [road for road in wanted if road in _SHOWN_BY]
    fell = tuple(road for road in seen if moved.get(_SHOWN_BY[road], 0) < _NOTICED)
    return Watched(seconds, nodes, moved, fell, tuple(set(wanted) - set(seen)), host, len(seen))


def keep_watched(results: Path, found: Watched) -> Path:
    """Writes watch.json."""
    file = results / FILE
    write_text_atomically(file, found.to_json())
    return file


def watching(results: Path, wanted: Sequence[str], run: Callable[[], int], hosts: int) -> int:
    """Runs on this many `hosts`, then prints the paths that the bytes took on this node and keeps them for `doctor`."""
    before, start = read_counters(fresh()), time.monotonic()
    code = run()
    found = watched(before, read_counters(fresh()), time.monotonic() - start, wanted, hosts, socket.gethostname())
    for line in found.lines():
        say(line)
    keep_watched(results, found)
    return code
