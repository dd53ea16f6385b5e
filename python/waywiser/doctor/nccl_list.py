"""NCCL's lists of devices and interfaces (NCCL_IB_HCA, NCCL_SOCKET_IFNAME), as NCCL reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass

ANY = -1


@dataclass(frozen=True)
class NcclList:
    """ "mlx5,eth:1": what begins with one of the names, after ":" only that port. "=" before all: these very names;
    "^" before that: all others."""

    entries: tuple[tuple[str, int], ...]  # name, port; ANY
    excludes: bool
    exact: bool

    def named(self, name: str) -> list[str]:
        """The names of the list that stand for this device."""
        return [one for one, _ in self.entries if (name == one if self.exact else name.startswith(one))]

    def takes(self, name: str, port: int = ANY) -> bool:
        """Whether NCCL may use a device, at the port if that is given."""
        fits = any(
            one in self.named(name) and (ANY in (wanted, port) or wanted == port) for one, wanted in self.entries
        )
        return (fits or not self.entries) != self.excludes


def read_nccl_list(text: str) -> NcclList:
    """Raises nothing: NCCL takes any text. A port that is no number is 0, which no device has."""
    excludes = text.startswith("^")
    rest = text.removeprefix("^")
    exact = rest.startswith("=")
    parts = [part.partition(":") for part in rest.removeprefix("=").split(",")]
    return NcclList(
        tuple((name, _port(port) if colon else ANY) for name, colon, port in parts if name), excludes, exact
    )


def _port(text: str) -> int:
    found = re.match(r"\s*[+-]?\d{1,9}", text)
    return int(found[0]) if found else 0
