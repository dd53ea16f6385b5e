"""Predicted beside published: findings on the published machines that the simulator can speak to.

docs/simulator.md says which inputs come from published values too, what was changed in sight of these figures, and
which findings are left out and why.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from waywiser import _core
from waywiser.simulator.costs import PORT_SHARE, costs_json
from waywiser.topology import load_topology

KIB, MIB = 1 << 10, 1 << 20
SIZES = [1 << power for power in range(3, 27)]
Setting = tuple[str, str, str]  # gdr, gdrcopy, nics
NEITHER, BOTH = ("off", "off", "1"), ("on", "on", "1")


@dataclass(frozen=True)
class Row:
    """One finding: published from `low` to `high` in `unit`."""

    machine: str
    finding: str
    low: float
    high: float
    predicted: float
    unit: str

    @property
    def error(self) -> float:
        """Of the prediction against the nearest published value; 0 within the range."""
        nearest = min(max(self.predicted, self.low), self.high)
        return self.predicted / nearest - 1

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "error": self.error}


@cache
def seconds(
    machine: str, operation: str, path: str, size: int, remote: bool, port_rate: float = 0.0, pair: str = "gpu0>gpu0"
) -> float:
    """Per transfer; `path` is "mechanism name=value ..."."""
    mechanism, *words = path.split()
    source, destination = pair.split(">")
    parameters = dict(word.split("=", 1) for word in words)
    value = {
        "mechanism": mechanism,
        "source": source,
        "destination": destination,
        "processes": 1,
        "parameters": parameters,
    }
    cluster: dict[str, Any] = {"nodes": 2 if remote else 1}
    if port_rate:
        cluster["port_rate"] = port_rate
    request = {
        "cluster": cluster,
        "paths": [{"path": value, "from_node": 0, "to_node": 1 if remote else 0}],
        "operations": [operation],
        "sizes": [size],
    }
    topology = load_topology(machine)
    answer = json.loads(_core.simulate(topology, costs_json({}, machine), json.dumps(request)))
    return float(answer["results"][0]["points"][0]["seconds"])


def _ib(setting: Setting) -> str:
    return "ucx transports=ib gdr={} gdrcopy={} nics={}".format(*setting)


def _latency(machine: str, setting: Setting, size: int = 8, port_rate: float = 0.0) -> float:
    return seconds(machine, "latency", _ib(setting), size, True, port_rate)


def _both_ways(machine: str, setting: Setting, size: int, port_rate: float = 0.0) -> float:
    return 2 * size / seconds(machine, "bidirectional", _ib(setting), size, True, port_rate)


def _crossing(wins: Callable[[int], bool]) -> float:
    """The largest size, in KiB, below the first at which it no longer wins, to 64 bytes."""
    above = next((size for size in SIZES if not wins(size)), SIZES[-1])
    below = above // 2
    while above - below > 64:
        middle = (below + above) // 2
        below, above = (middle, above) if wins(middle) else (below, middle)
    return below / KIB


def _gain(machine: str, size: int, nics: str = "1") -> float:
    return _both_ways(machine, ("on", "on", nics), size) / _both_ways(machine, ("off", "off", nics), size)


def _two_nodes() -> list[Row]:
    rows = []
    for machine, factor in (("hse-a", 7.0), ("hse-e", 7.8)):
        both = max(_latency(machine, NEITHER, size) / _latency(machine, BOTH, size) for size in (8, 16, 32))
        rows.append(Row(machine, "latency falls with GDR and GDRCopy, up to 32 B", factor, factor, both, "times"))
    # Sizes were powers of two: what helped up to 16 KiB stopped to help between 16 and 32.
    raised = _crossing(
        lambda size: _both_ways("hse-a", BOTH, size) > 1.02 * _both_ways("hse-a", ("off", "on", "1"), size)
    )
    rows.append(Row("hse-a", "GDR raises bandwidth up to", 16, 32, raised, "KiB"))
    for machine in ("hse-a", "hse-c", "hse-e"):
        helped = _crossing(
            lambda size, m=machine: (  # type: ignore[misc]
                _both_ways(m, ("off", "on", "1"), size) > 1.02 * _both_ways(m, NEITHER, size)
            )
        )
        rows.append(Row(machine, "GDRCopy helps up to", 8, 16, helped, "KiB"))
    small = max(_gain("hse-e", size, "2") for size in SIZES if size < 64 * KIB)
    large = max(_gain("hse-e", size, "2") for size in SIZES if size > 64 * KIB)
    rows.append(Row("hse-e", "bandwidth with both against neither, small messages, up to", 3.86, 3.86, small, "times"))
    rows.append(Row("hse-e", "bandwidth with both against neither, above 64 KiB, up to", 2, 2, large, "times"))
    peak = max(_both_ways("hse-e", ("on", "on", "2"), size) for size in SIZES) / 1e9
    rows.append(Row("hse-e", "peak, both directions together", 30.4, 30.4, peak, "GB/s"))
    rows.append(Row("dgx-a100", "latency with neither", 26.6, 26.6, _latency("dgx-a100", NEITHER) * 1e6, "us"))
    rows.append(Row("dgx-a100", "latency with GDR and GDRCopy", 3.4, 3.4, _latency("dgx-a100", BOTH) * 1e6, "us"))
    one = 64 * MIB / seconds("dgx-a100", "streaming", _ib(BOTH), 64 * MIB, True) / 1e9
    rows.append(Row("dgx-a100", "one NIC with GDR", 24, 24, one, "GB/s"))
    return rows + _one_way()


def _one_way() -> list[Row]:
    """osu_bw from GPU to host memory, 64 messages in flight (openucx/ucx, issue 6206); its 8 bytes are an input."""

    def spent(setting: Setting, size: int) -> float:
        return seconds("dgx-a100", "streaming", _ib(setting), size, True, 0.0, "gpu0>host0")

    neither, copied = spent(NEITHER, 64), spent(("off", "on", "1"), 64)
    return [
        Row("dgx-a100", "64 B one way with GDR and GDRCopy", 10.5, 10.5, neither / spent(BOTH, 64), "times"),
        Row("dgx-a100", "64 B one way with GDRCopy alone", 4.75, 4.75, neither / copied, "times"),
        Row("dgx-a100", "a message of 4 KiB with neither", 14.8, 14.8, spent(NEITHER, 4 * KIB) * 1e6, "us"),
    ]


def _roce() -> list[Row]:
    port = 5e9 * PORT_SHARE  # 40 Gb/s
    off, on = ("off", "off", "1"), ("on", "off", "1")
    machine = "dgx-1v"  # a NIC below the GPU's PCIe switch; the published machine is not described
    gain = _both_ways(machine, on, 8 * KIB, port) / _both_ways(machine, off, 8 * KIB, port)
    return [
        Row("40 Gb/s RoCE", "latency without GDR", 20, 20, _latency(machine, off, 8, port) * 1e6, "us"),
        Row("40 Gb/s RoCE", "latency with GDR", 10, 10, _latency(machine, on, 8, port) * 1e6, "us"),
        Row("40 Gb/s RoCE", "throughput at 8 KiB with GDR", 4, 4, gain, "times"),
    ]


def _one_machine() -> list[Row]:
    size = 256 * MIB

    def rate(path: str, pair: str) -> float:
        return size / seconds("dgx-1v", "streaming", path, size, False, 0.0, pair) / 1e9

    staged = rate("host_staged variant=pipelined chunk=4M depth=4", "gpu0>gpu5")
    ring = min(
        rate("sm_copy direction=push blocks=64", pair)
        for pair in (
            "gpu0>gpu3",
            "gpu3>gpu2",
            "gpu2>gpu1",
            "gpu1>gpu5",
            "gpu5>gpu6",
            "gpu6>gpu7",
            "gpu7>gpu4",
            "gpu4>gpu0",
        )
    )
    return [
        Row("dgx-1v", "peer copy over one NVLink", 24, 24, rate("copy_engine", "gpu0>gpu1"), "GB/s"),
        Row("dgx-1v", "peer copy over PCIe", 11, 11, staged, "GB/s"),
        Row("dgx-1v", "all-reduce, ring over pairs of NVLinks, bus bandwidth", 48, 48, ring, "GB/s"),
    ]


def _data_frame() -> list[Row]:
    size = 256 * MIB
    tcp = size / seconds("dgx-1v", "streaming", "ucx transports=network-tcp", size, True) / 1e9
    native = size / seconds("dgx-1v", "streaming", _ib(BOTH), size, True) / 1e9
    return [
        Row("dgx-1v", "data-frame merge over TCP", 1.9, 1.9, tcp, "GB/s"),
        Row("dgx-1v", "data-frame merge over InfiniBand", 11.7, 11.7, native, "GB/s"),
    ]


def _pageable(machine: str, size: int, pair: str) -> float:
    """A copy between ordinary memory and a GPU: the CPU's part and the engine's, one after the other."""
    costs = json.loads(_core.simulator_costs(load_topology(machine), costs_json({}, machine)))
    rate = costs["pageable.h2d_rate" if pair.startswith("host") else "pageable.d2h_rate"]
    return seconds(machine, "latency", "copy_engine", size, False, 0.0, pair) + size / float(rate)


def _remote_gpu() -> list[Row]:
    """Two arrays to the GPU and one back, 100 million float32 each, one after the other; times of transfers only."""
    rows = []
    size = 400_000_000
    for machine in ("remote-t4", "remote-a10"):
        local = 2 * _pageable(machine, size, "host0>gpu0") + _pageable(machine, size, "gpu0>host0")

        def wire(transports: str, pair: str = "host0>host0", m: str = machine) -> float:
            return seconds(m, "latency", transports, size, True, 0.0, pair)

        native, tcp = (3 * wire(f"ucx transports={name}") + local for name in ("ib", "network-tcp"))
        rows.append(
            Row(machine, "InfiniBand against TCP over it, staged in pageable memory", 2, 3, tcp / native, "times")
        )
        direct = 2 * wire(_ib(BOTH), "host0>gpu0") + wire(_ib(BOTH), "gpu0>host0")
        rows.append(
            Row(machine, "remote with RDMA into GPU memory against local, pageable", 0.5, 1, direct / local, "times")
        )
    return rows


def compare() -> list[Row]:
    """All rows."""
    return [*_two_nodes(), *_roce(), *_one_machine(), *_data_frame(), *_remote_gpu()]
