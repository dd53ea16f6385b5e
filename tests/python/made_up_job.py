"""Made-up machines on which a job runs: folders of /proc and /sys, and what the kernel would have counted."""

from __future__ import annotations

import ipaddress
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from doctor_machines import Files, build, gpu, nic

from waywiser.look.recorded import recorded_root
from waywiser.running.evidence import Evidence, watch
from waywiser.running.fallbacks import Named, name_fall_backs

HERE, OTHER = "10.0.0.1", "10.0.0.2"
SLOW, FAST = "eth0", "eth1"
LIBNCCL = "/opt/nccl/lib/libnccl.so.2"
LIBUCP = "/opt/ucx/lib/libucp.so.0"
LIBMPI = ("/opt/mpi/lib/libmpi.so.40", "/opt/mpi/lib/libopen-pal.so.80")
LAUNCHER = 100
GPUS = ("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl")


@dataclass
class Peer:
    """A connection of a rank: to rank `peer` of this machine, or to another machine over the interface."""

    peer: int | None
    bytes: int
    interface: str = "lo"
    port: int = 40000


@dataclass
class MadeRank:
    libraries: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    shared: Sequence[str] = ()  # of /dev/shm; the same name is the same memory
    open: Sequence[str] = ()
    peers: Sequence[Peer] = ()
    namespaces: Mapping[str, str] = field(default_factory=dict)


def _words(address: str) -> str:
    return f"{struct.unpack('=I', ipaddress.IPv4Address(address).packed)[0]:08X}"


def _network(interface: str) -> str:
    return {"lo": "127.0.0.1", SLOW: HERE, FAST: "10.1.0.1"}[interface]


def _elsewhere(interface: str) -> str:
    return {SLOW: OTHER, FAST: "10.1.0.2"}[interface]


class MadeJob:
    """Ranks of a made-up job of torchrun, by default all on this machine; rank r is the process 101 + r."""

    def __init__(self, ranks: Sequence[MadeRank], size: int | None = None) -> None:
        self._ranks, self._size = ranks, size or len(ranks)
        self._lines: list[str] = []
        self._counted: list[list[int]] = []
        self._sockets: dict[int, list[int]] = {rank: [] for rank in range(len(ranks))}
        self._inode = 1000
        for rank, made in enumerate(ranks):
            for peer in made.peers:
                self._connect(rank, peer)

    def _connect(self, rank: int, peer: Peer) -> None:
        mine, theirs = (self._inode, 40000 + self._inode), (self._inode + 1, peer.port + (peer.peer is not None))
        self._inode += 2
        here = _network(peer.interface)
        there = here if peer.peer is not None else _elsewhere(peer.interface)
        self._add(rank, mine[0], (here, mine[1]), (there, theirs[1]), peer.bytes)
        if peer.peer is not None:
            self._add(peer.peer, theirs[0], (there, theirs[1]), (here, mine[1]), peer.bytes)

    def _add(self, rank: int, inode: int, here: tuple[str, int], there: tuple[str, int], many: int) -> None:
        ends = " ".join(f"{_words(address)}:{port:04X}" for address, port in (here, there))
        place = len(self._lines)
        self._lines.append(f"{place:4}: {ends} 01 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0 20")
        self._counted.append([inode, many, many])
        self._sockets[rank].append(inode)

    def files(self) -> Files:
        found: Files = {"/proc/sys/kernel/hostname": "node1", f"/proc/{LAUNCHER}/stat": f"{LAUNCHER} (x) S 1 1 1"}
        found[f"/proc/{LAUNCHER}/environ"] = "PATH=/bin\0"
        found[f"/proc/{LAUNCHER}/cmdline"] = "torchrun\0train.py\0"
        for rank, made in enumerate(self._ranks):
            found |= self._process(101 + rank, rank, made)
        return found

    def _process(self, number: int, rank: int, made: MadeRank) -> Files:
        folder = f"/proc/{number}"
        told = {"RANK": rank, "WORLD_SIZE": self._size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": len(self._ranks)}
        told |= {"TORCHELASTIC_RUN_ID": "made", "MASTER_PORT": 29500}
        variables = {**{name: str(value) for name, value in told.items()}, **made.environment}
        maps = [f"7f00-7f01 r-xp 00000000 08:01 {abs(hash(file)) % 10**9} {file}" for file in made.libraries]
        maps += [f"7f02-7f03 rw-s 00000000 00:16 {abs(hash(name)) % 10**9} /dev/shm/{name}" for name in made.shared]
        head = "  sl  local_address rem_address\n"
        route = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
        for name, network in ((SLOW, "10.0.0.0"), (FAST, "10.1.0.0")):
            route += f"{name} {_words(network)} 00000000 0001 0 0 0 {_words('255.255.255.0')} 0 0 0\n"
        local = "".join(f"  |-- {address}\n      /32 host LOCAL\n" for address in (HERE, "10.1.0.1", "127.0.0.1"))
        return {
            f"{folder}/stat": f"{number} (python (x)) S {LAUNCHER} 1 1",
            f"{folder}/cmdline": "python\0train.py\0",
            f"{folder}/environ": "\0".join(f"{name}={value}" for name, value in variables.items()),
            f"{folder}/maps": "\n".join(maps),
            f"{folder}/status": "Uid:\t1000 1000 1000 1000\nCapEff:\t0000000000000000\n",
            f"{folder}/net/tcp": head + "\n".join(self._lines),
            f"{folder}/net/route": route,
            f"{folder}/net/fib_trie": local,
        }

    def links(self) -> dict[str, str]:
        found = {"/proc/self/ns/net": "net:[1]"}
        for rank, made in enumerate(self._ranks):
            targets = [*made.open, *(f"socket:[{inode}]" for inode in self._sockets[rank])]
            found |= {f"/proc/{101 + rank}/fd/{at}": target for at, target in enumerate(targets)}
            found |= {f"/proc/{101 + rank}/ns/{kind}": value for kind, value in made.namespaces.items()}
        return found

    def commands(self) -> dict[str, str]:
        return {"waywiser-probe sockets": json.dumps({"tcp": self._counted})}


def interfaces(**speeds: int) -> Files:
    """Interfaces that are up, with their speed in Mb/s."""
    found: Files = {}
    for name, speed in speeds.items():
        folder = f"/sys/class/net/{name}"
        found |= {f"{folder}/type": "1", f"{folder}/operstate": "up", f"{folder}/speed": str(speed)}
    return found


def nvlink(gpus: int, kib: int) -> dict[str, str]:
    """The counters of a link of each GPU."""
    lines = "".join(f"GPU {i}: H\n\t Link 0: Data Tx: {kib} KiB\n\t Link 0: Data Rx: {kib} KiB\n" for i in range(gpus))
    return {"nvidia-smi nvlink -gt d": lines}


def pcie(gpus: int, many: int) -> dict[str, str]:
    rows = [{"sent": many, "received": many}] * gpus
    return {"waywiser-probe nvml": json.dumps({"pcie": rows})}


def look_at(
    folder: Path,
    job: MadeJob,
    machine: Files | None = None,
    then: Mapping[str, str] | None = None,
    later: Mapping[str, str] | None = None,
    before: MadeJob | None = None,
) -> tuple[Evidence, list[Named]]:
    """What is seen of it: `machine` has its other files, `then` and `later` what commands say at the two looks;
    `before`: the job at the first look, if it was another."""
    roots = []
    for at, more in enumerate((then or {}, later if later is not None else then or {})):
        place = folder / str(at)
        now = before if before and at == 0 else job
        build(place, {**(machine or {}), **now.files()})
        for path, target in now.links().items():
            (place / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (place / path.lstrip("/")).symlink_to(target)
        head = {"schema": "waywiser.root", "version": 1, "commands": {**now.commands(), **more}}
        (place / "waywiser-root.json").write_text(json.dumps(head))
        roots.append(recorded_root(place))
    looks = iter(roots)
    seen = watch(lambda: next(looks), LAUNCHER, 1.0, lambda _: None, lambda _: [])
    return seen, name_fall_backs(seen)


TWO_GPUS = gpu() | gpu("0000:65:00.0", "0000:64:00.0")
CARD = nic()
