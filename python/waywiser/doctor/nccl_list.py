"""NCCL's lists of devices and interfaces (NCCL_IB_HCA, NCCL_SOCKET_IFNAME), as NCCL reads them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NcclList:
    """ "mlx5,eth:1": what begins with one of the names, after ":" only that port. "=" before all: these very names;
    "^" before that: all others."""

    entries: tuple[tuple[str, str], ...]  # name, port; "": any
    excludes: bool
    exact: bool

    def named(self, name: str) -> list[str]:
        """The names of the list that stand for this device."""
        return [one for one, _ in self.entries if (name == one if self.exact else name.startswith(one))]

    def takes(self, name: str, port: str = "") -> bool:
        """Whether NCCL may use a device, at the port if that is given."""
        fits = any(
            one in self.named(name) and (not wanted or not port or wanted == port) for one, wanted in self.entries
        )
        return (fits or not self.entries) != self.excludes


def read_nccl_list(text: str) -> NcclList:
    """Raises nothing: NCCL takes any text."""
    excludes = text.startswith("^")
    rest = text.removeprefix("^")
    exact = rest.startswith("=")
    parts = [part.partition(":") for part in rest.removeprefix("=").split(",") if part]
    return NcclList(tuple((name, port) for name, _, port in parts), excludes, exact)
