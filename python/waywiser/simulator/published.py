"""Compares predictions with published findings that the simulator can reproduce.

Each row comes from commands that are in the table too. docs/experiments.md has the tables. docs/simulator.md says which
inputs come from published values, and which were changed after seeing these figures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from waywiser.errors import InputError
from waywiser.simulator.answers import Answer, Run, answers_of
from waywiser.simulator.figures import figures_of_others, machine_commands
from waywiser.simulator.findings import Claim, Find, Row

KIB, MIB = 1 << 10, 1 << 20


def _claim(
    machine: str,
    finding: str,
    published: float | tuple[float, float],
    unit: str,
    how: str,
    find: Find,
    *commands: str,
) -> Claim:
    low, high = published if isinstance(published, tuple) else (published, published)
    lines = tuple(f"waywiser simulate {command}" for command in commands)
    return Claim(machine, finding, low, high, unit, how, lines, find)


def _gain(one: dict[int, float], other: dict[int, float], least: int = 0, most: int = 1 << 60) -> float:
    """The largest ratio of the time of `one` to that of `other`."""
    return max(one[size] / other[size] for size in one if least <= size < most)


def _last_win(one: dict[int, float], other: dict[int, float]) -> float:
    """The last size, in KiB, up to which `one` is 2 % faster than `other`; 0 if it never is."""
    held = 0
    for size in sorted(one):
        if one[size] * 1.02 >= other[size]:
            break
        held = size
    return held / KIB


def _neither_both(told: Answer, least: int = 0, most: int = 1 << 60) -> float:
    return _gain(told.times(gdr="off", gdrcopy="off"), told.times(gdr="on", gdrcopy="on"), least, most)


def _two_nodes() -> Iterator[Claim]:
    how = "neither / both, the largest"
    for machine, factor in (("hse-a", 7.0), ("hse-e", 7.8)):
        text = f"latency --machine {machine} --sizes 8,16,32 --vary gdr,gdrcopy"
        yield _claim(
            machine, "latency falls with GDR and GDRCopy, up to 32 B", factor, "times", how, _neither_both, text
        )
    # Sizes were powers of two: a setting that helped up to 16 KiB stopped helping between 16 and 32 KiB.
    yield _claim(
        "hse-a", "GDR raises bandwidth up to", (16, 32), "KiB", "the last size with 2 % by gdr",
        lambda told: _last_win(told.times(gdr="on"), told.times(gdr="off")),
        "bidirectional --machine hse-a --sizes 8K..40K/256 --vary gdr",
    )  # fmt: skip
    for machine in ("hse-a", "hse-c", "hse-e"):
        yield _claim(
            machine, "GDRCopy helps up to", (8, 16), "KiB", "the last size with 2 % by gdrcopy",
            lambda told: _last_win(told.times(gdrcopy="on"), told.times(gdrcopy="off")),
            f"bidirectional --machine {machine} --sizes 4K..18K/128 --set gdr=off --vary gdrcopy",
        )  # fmt: skip
    text = "bidirectional --machine hse-e --set nics=2 --vary gdr,gdrcopy"
    finding = "bandwidth with both against neither, small messages, up to"
    yield _claim("hse-e", finding, 3.86, "times", f"{how} below 64 KiB", lambda t: _neither_both(t, 0, 64 * KIB), text)
    finding = "bandwidth with both against neither, above 64 KiB, up to"
    yield _claim("hse-e", finding, 2, "times", f"{how} above", lambda t: _neither_both(t, 64 * KIB + 1), text)
    yield _claim("hse-e", "peak, both directions together", 30.4, "GB/s", "both, the largest", _peak, text)


def _peak(told: Answer) -> float:
    return max(2 * size / seconds for size, seconds in told.times(gdr="on", gdrcopy="on").items()) / 1e9


def _dgx_a100() -> Iterator[Claim]:
    def us(**setting: str) -> Find:
        return lambda told: told.only(**setting) * 1e6

    text = "latency --machine dgx-a100 --sizes 8 --vary gdr,gdrcopy"
    yield _claim("dgx-a100", "latency with neither", 26.6, "µs", "neither", us(gdr="off", gdrcopy="off"), text)
    yield _claim("dgx-a100", "latency with GDR and GDRCopy", 3.4, "µs", "both", us(gdr="on", gdrcopy="on"), text)
    yield _claim(
        "dgx-a100", "one NIC with GDR", 24, "GB/s", "", Answer.rate, "bandwidth --machine dgx-a100 --sizes 64M"
    )

    # osu_bw from GPU to host memory, 64 messages in flight (openucx/ucx, issue 6206); its 8 bytes are an input.
    def gain(gdr: str) -> Find:
        return lambda told: told.only(gdr="off", gdrcopy="off") / told.only(gdr=gdr, gdrcopy="on")

    text = "bandwidth --machine dgx-a100 --pair gpu0-to-host0 --sizes 64 --vary gdr,gdrcopy"
    yield _claim("dgx-a100", "64 B one way with GDR and GDRCopy", 10.5, "times", "neither / both", gain("on"), text)
    yield _claim("dgx-a100", "64 B one way with GDRCopy alone", 4.75, "times", "neither / gdrcopy", gain("off"), text)
    text = "bandwidth --machine dgx-a100 --pair gpu0-to-host0 --sizes 4K --set gdr=off --set gdrcopy=off"
    yield _claim("dgx-a100", "a message of 4 KiB with neither", 14.8, "µs", "4 KiB / rate", us(), text)


def _roce() -> Iterator[Claim]:
    # A NIC below the GPU's PCIe switch; the published machine is not described.
    settings = "--machine dgx-1v --set nic=eth40 --set gdrcopy=off --vary gdr"
    text = f"latency {settings} --sizes 8"
    name = "40 Gb/s RoCE"
    yield _claim(name, "latency without GDR", 20, "µs", "gdr off", lambda told: told.only(gdr="off") * 1e6, text)
    yield _claim(name, "latency with GDR", 10, "µs", "gdr on", lambda told: told.only(gdr="on") * 1e6, text)
    yield _claim(
        name, "throughput at 8 KiB with GDR", 4, "times", "gdr on / off",
        lambda told: told.only(gdr="off") / told.only(gdr="on"), f"bandwidth {settings} --sizes 8K",
    )  # fmt: skip


def _one_machine() -> Iterator[Claim]:
    text = "bandwidth --machine dgx-1v --path copy_engine --pair gpu0-to-gpu1 --sizes 256M"
    yield _claim("dgx-1v", "peer copy over one NVLink", 24, "GB/s", "", Answer.rate, text)
    staged = "'host_staged variant=pipelined chunk=4M depth=4'"
    text = f"bandwidth --machine dgx-1v --path {staged} --pair gpu0-to-gpu5 --sizes 256M"
    yield _claim("dgx-1v", "peer copy over PCIe", 11, "GB/s", "", Answer.rate, text)


# NCCL's all-reduce: machine, finding, GB/s of bus bandwidth, words of the command. Sources: issues 29, 175, 212 and 290
# of NVIDIA/nccl-tests, 307, 812 and 1455 of NVIDIA/nccl; docs/simulator.md says which says what.
_IN_CUBE = "--order 0,3,2,1,5,6,7,4 --sizes 512M"
_NCCL: tuple[tuple[str, str, float | tuple[float, float], str], ...] = (
    ("dgx-1v", "between nodes, ring, one card a node", 12.2, f"--nodes 4 --algorithms ring {_IN_CUBE}"),
    ("dgx-1v", "between nodes, ring, four cards a node", (47, 48), f"--nodes 4 --algorithms nccl_ring {_IN_CUBE}"),
    ("dgx-1v", "on two nodes, trees, four cards a node", 58, f"--nodes 2 --algorithms nccl_tree {_IN_CUBE}"),
    ("dgx-a100", "within a node, ring", 232.5, "--nodes 1 --algorithms nccl_ring --sizes 4G"),
    ("dgx-a100", "between nodes, ring, eight cards a node", 192, "--nodes 2 --algorithms nccl_ring --sizes 8G"),
    ("dgx-h100", "within a node, ring", (365, 370), "--nodes 1 --algorithms nccl_ring --sizes 4G"),
    ("dgx-h100", "on two nodes, ring, eight cards a node", (368, 384), "--nodes 2 --algorithms nccl_ring --sizes 8G"),
)


def _all_reduce() -> Iterator[Claim]:
    for machine, finding, published, words in _NCCL:
        yield _claim(
            machine, f"all-reduce {finding}", published, "GB/s", "bus bandwidth",
            Answer.bus_bandwidth, f"all_reduce --machine {machine} {words}",
        )  # fmt: skip


def _merge() -> Iterator[Claim]:
    """8 GPUs of a node: 1.9 GB/s by TCP, 3.9 by NVLink, 11.7 by InfiniBand, of a program; its exchange is predicted."""
    command = ("waywiser bench merge --machine dgx-1v",)
    steps = [("nvlink", "tcp", "NVLink, else TCP, against TCP", 3.9 / 1.9)]
    steps.append(("infiniband", "nvlink", "InfiniBand against NVLink, else TCP", 11.7 / 3.9))
    for way, base, name, published in steps:

        def find(told: Answer, way: str = way, base: str = base) -> float:
            return told.rates()[way] / told.rates()[base]

        what, told = f"merge of tables on 8 GPUs, {name}", round(published, 2)
        yield Claim("dgx-1v", what, told, told, "times", f"{way} / {base}", command, find)


def _remote_gpu() -> Iterator[Claim]:
    """Two arrays to the GPU and one back, 100 million float32 each, one after the other; times of transfers only."""
    for machine in ("remote-t4", "remote-a10"):

        def text(pair: str, path: str, machine: str = machine) -> str:
            return f"latency --machine {machine} --sizes 400000000 --pair {pair}{path}"

        pageable = " --path 'copy_engine memory=pageable'"
        local = (text("host0-to-gpu0", pageable), text("gpu0-to-host0", pageable))

        def staged(into: Answer, out: Answer, native: Answer, tcp: Answer) -> float:
            near = 2 * into.only() + out.only()
            return (3 * tcp.only() + near) / (3 * native.only() + near)

        wires = (text("host0-to-host0", ""), text("host0-to-host0", " --path 'ucx transports=network-tcp'"))
        finding = "InfiniBand against TCP over it, staged in pageable memory"
        yield _claim(machine, finding, (2, 3), "times", "(2 a + b + 3 d) / (2 a + b + 3 c)", staged, *local, *wires)

        pinned = tuple(command.replace(pageable, " --path copy_engine") for command in local)
        finding = "staged in pinned memory against pageable memory, over InfiniBand"
        how = "(2 a + b + 3 e) / (2 c + d + 3 e)"
        yield _claim(machine, finding, (1, math.inf), "times", how, _pinned_gain, *local, *pinned, wires[0])

        def direct(into: Answer, out: Answer, there: Answer, back: Answer) -> float:
            return (2 * there.only() + back.only()) / (2 * into.only() + out.only())

        wires = (text("host0-to-gpu0", ""), text("gpu0-to-host0", ""))
        finding = "remote with RDMA into GPU memory against local, pageable"
        yield _claim(machine, finding, (0.5, 1), "times", "(2 c + d) / (2 a + b)", direct, *local, *wires)


def _pinned_gain(into: Answer, out: Answer, pinned_into: Answer, pinned_out: Answer, wire: Answer) -> float:
    wires = 3 * wire.only()
    return (2 * into.only() + out.only() + wires) / (2 * pinned_into.only() + pinned_out.only() + wires)


def compare(run: Run, machines: Sequence[str] = ()) -> list[Row]:
    """All rows, or those whose commands are about one of these machines; `run` runs their command lines."""
    claims = [*_two_nodes(), *_dgx_a100(), *_roce(), *_one_machine(), *_all_reduce(), *_merge(), *_remote_gpu()]
    claims += figures_of_others()
    about = [re.findall(r"--machine (\S+)", claim.commands[0])[0].removesuffix(".json") for claim in claims]
    if unknown := sorted(set(machines) - set(about)):
        raise InputError(f"no published finding about {unknown[0]!r}: write some of {', '.join(dict.fromkeys(about))}")
    wanted = [claim for claim, one in zip(claims, about, strict=True) if not machines or one in machines]
    with answers_of(run, machine_commands([c for claim in wanted for c in claim.commands])) as answer:
        return [claim.row(answer) for claim in wanted]
