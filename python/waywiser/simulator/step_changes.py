"""What a change of the machine, the buckets or the overlap would give a training step; the step as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from waywiser import _core
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.step import Step, Timed
from waywiser.stages import Show

SCHEMA, VERSION = "waywiser.step", 1


class Change(NamedTuple):
    """A change, and the time of a step with it."""

    name: str
    timed: Timed


def changes(step: Step, show: Show) -> list[Change]:
    """What ports or NVLinks of twice the rate, other buckets and no overlap would give."""
    found: list[tuple[str, Step]] = []
    layout = step.layout
    if step.cluster.nodes > 1:
        cluster = _faster_ports(step)
        limit = " (PCIe is the limit)" if cluster.port_note(step.topology) else ""
        found.append((f"ports of twice the rate{limit}", replace(step, cluster=cluster)))
    if any(link.kind == "nvlink" for link in step.topology.links):
        found.append(("twice as many NVLinks", replace(step, topology=_more_nvlinks(step.topology))))
    if layout.data > 1 and not layout.shard:
        found.append(("buckets 4 times as large", replace(step, layout=replace(layout, bucket=4 * layout.bucket))))
        small = max(1, layout.bucket // 4)
        found.append(("buckets a quarter as large", replace(step, layout=replace(layout, bucket=small))))
    if layout.data > 1:
        other = "without overlap" if layout.overlap else "with overlap"
        found.append((other, replace(step, layout=replace(layout, overlap=not layout.overlap))))
    return [Change(name, one.run(show)) for name, one in found]


def _faster_ports(step: Step) -> Cluster:
    links = [link for link in step.topology.links if link.kind == "network"]
    rate = step.cluster.network.get("port_rate") or max(
        (link.achievable or link.nominal or 0.0 for link in links), default=0.0
    )
    return replace(step.cluster, network={**step.cluster.network, "port_rate": 2 * rate})


def _more_nvlinks(topology: Any) -> Any:
    told = json.loads(topology.to_json())
    for link in told["links"]:
        if link["kind"] == "nvlink":
            link["count"] = 2 * link.get("count", 1)
            for rate in ("nominal", "achievable"):
                if rate in link:
                    link[rate] *= 2
    return _core.Topology.from_json(json.dumps(told), topology.name)


def as_json(step: Step, timed: Timed, others: Sequence[Change]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "simulated": True,
        "machine": step.topology.name,
        "nodes": step.cluster.nodes,
        "model": vars(step.model),
        "parallel": vars(step.layout),
        "gpu": asdict(step.speed),
        "state_bytes": step.state_bytes(),
        **_seconds(timed),
        "beside": timed.beside._asdict(),
        "collectives": [call.as_json() for call in timed.calls],
        "changes": [{"change": one.name, **_seconds(one.timed)} for one in others],
        "assumed": step.assumed,
    }


def _seconds(timed: Timed) -> dict[str, Any]:
    return {
        "seconds": timed.total,
        "compute": timed.compute,
        "exposed": timed.exposed,
        "exposed_tensor": timed.tensor,
        "exposed_sequence": timed.sequence,
        "exposed_expert": timed.expert,
        "exposed_stages": timed.stages,
        "exposed_data": timed.data,
        "bubble": timed.bubble,
    }
