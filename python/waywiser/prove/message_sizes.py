"""How large the messages of a program are: by Open MPI's own monitoring and NCCL's log, in a run that is not timed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from waywiser.units import format_bytes

_LARGEST = 64 << 20  # characters of a log
_CLASSES = 66
# A line for each peer: who, bytes, messages, then how many of each class of sizes.
_MPI = re.compile(r"E\t\d+\t\d+\t\d+ bytes\t\d+ msgs sent\t([\d,]{1,2000})")
_NCCL = re.compile(
    r"NCCL INFO (AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv|AlltoAll|Gather|Scatter): "
    r"opCount .{0,200}?"
    r"count (\d{1,18}) datatype (\d{1,2}) "
)
# ncclDataType_t -> bytes
_BYTES = {0: 1, 1: 1, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2, 10: 1, 11: 1}


@dataclass(frozen=True)
class MessageSizes:
    """Messages of one kind. Class 0 has the empty ones, class k those from 2^(k-1) to below 2^k bytes."""

    kind: str
    counts: dict[int, int] = field(default_factory=dict)

    def rows(self) -> list[dict[str, int | str]]:
        """Each class: its least size, the size that it stays below, the number of messages."""
        return [
            {"kind": self.kind, "from": 0 if k == 0 else 1 << (k - 1), "below": 1 << k, "messages": count}
            for k, count in sorted(self.counts.items())
        ]

    @property
    def text(self) -> str:
        """ "16 of 1 MiB to 2 MiB"."""
        told = (
            f"{count:,} " + ("empty" if k == 0 else f"of {format_bytes(1 << (k - 1))} to {format_bytes(1 << k)}")
            for k, count in sorted(self.counts.items())
        )
        return f"{self.kind}: {', '.join(told)}"


def recording_variables(folder: Path) -> dict[str, str]:
    """What makes Open MPI and NCCL write what they send into a folder."""
    mpi = {"enable": "2", "enable_output": "3", "filename": str(folder / "mpi")}
    nccl = {"DEBUG": "INFO", "DEBUG_SUBSYS": "INIT,NET,COLL", "DEBUG_FILE": str(folder / "nccl.%p.log")}
    return {
        **{f"OMPI_MCA_pml_monitoring_{name}": value for name, value in mpi.items()},
        **{f"NCCL_{name}": value for name, value in nccl.items()},
    }


def recorded_sizes(folder: Path) -> list[MessageSizes]:
    """What they have written there, over all ranks of this machine."""
    found: dict[str, dict[int, int]] = {}
    for kind, size_class, count in [*_of_mpi(folder), *_of_nccl(folder)]:
        counts = found.setdefault(kind, {})
        counts[size_class] = counts.get(size_class, 0) + count
    return [MessageSizes(kind, counts) for kind, counts in found.items()]


def _texts(files: Iterable[Path]) -> Iterator[str]:
    for file in sorted(files):
        with file.open(encoding="utf-8", errors="replace") as text:
            yield text.read(_LARGEST)


def _of_mpi(folder: Path) -> Iterator[tuple[str, int, int]]:
    for text in _texts(folder.glob("mpi.*.prof")):
        for line in _MPI.finditer(text):
            counts = [int(word) for word in line[1].split(",")[:_CLASSES] if word]
            yield from (("MPI messages", k, count) for k, count in enumerate(counts) if count)


def _of_nccl(folder: Path) -> Iterator[tuple[str, int, int]]:
    for text in _texts(folder.glob("nccl.*.log")):
        for name, count, kind in _NCCL.findall(text):
            if int(kind) in _BYTES:
                yield f"NCCL {name}", (int(count) * _BYTES[int(kind)]).bit_length(), 1
