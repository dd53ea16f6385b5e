"""The measurements of `verify`, kept beside the settings: every round of every variant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from waywiser.apply.setting import Settings
from waywiser.apply.store import file_of
from waywiser.files import write_text_atomically
from waywiser.prove.prove import Proof
from waywiser.prove.transport_counters import Carried, CountedBenchmark
from waywiser.stages import now

SCHEMA = "waywiser.evidence"
VERSION = 1


def evidence_json(
    settings: Settings,
    library: str,
    proofs: Sequence[Proof],
    benchmark: CountedBenchmark,
    state: dict[str, str],
    nodes: Sequence[str] = (),
) -> str:
    """All times in seconds by variant, test and size, in the order of the rounds; a step for each proof."""
    steps = []
    for proof in proofs:
        carried = benchmark.carried(proof)
        variants = [
            {
                "name": one.name,
                "variables": dict(one.variables),
                "carried": carried_json(carried.get(one.name)),
                "seconds": [
                    {"test": test, "bytes": size, "rounds": one.times((test, size))} for test, size in proof.cases
                ],
            }
            for one in proof.variants
        ]
        verdicts = {name: {**vars(one), "wins": one.wins} for name, one in proof.verdicts.items()}
        steps.append({"kept": proof.kept, "verdicts": verdicts, "failed": dict(proof.failed), "variants": variants})
    head = {"schema": SCHEMA, "version": VERSION, "created": now(), "fingerprint": settings.fingerprint}
    body = {"machine": settings.machine, "library": library, "versions": settings.versions, "state": state}
    body |= {"libraries": settings.libraries, "nodes": list(nodes)}
    return json.dumps({**head, **body, "steps": steps}, indent=1)


def carried_json(one: Carried | None) -> dict[str, Any]:
    """What the counters of this node say about a variant, over all its runs; `kinds` carried more than background."""
    found = one or Carried()
    return {"runs": found.runs, "kinds": found.kinds, "bytes": found.bytes, "packets": found.packets}


def summary_json(settings: Settings, what: str, proofs: Sequence[Proof], benchmark: CountedBenchmark) -> str:
    """The medians in seconds, the verdicts on speed, and the counters, for programs."""
    steps = []
    for proof in proofs:
        rows = [
            {
                "test": test,
                "bytes": size,
                "seconds": {one.name: median(one.times((test, size))) for one in proof.variants},
            }
            for test, size in proof.cases
        ]
        verdicts = {name: {**vars(one), "wins": one.wins} for name, one in proof.verdicts.items()}
        carried = {name: carried_json(one) for name, one in benchmark.carried(proof).items()}
        steps.append({"base": proof.base, "kept": proof.kept, "verdicts": verdicts, "failed": dict(proof.failed),
                      "carried": carried, "rows": rows})  # fmt: skip
    kept = {one.name: one.value for one in settings.settings}
    head = {"machine": settings.machine, "benchmark": what, "libraries": settings.versions}
    return json.dumps({**head, "steps": steps, "settings": kept}, indent=1)


def keep_evidence(
    results: Path,
    settings: Settings,
    library: str,
    proofs: Sequence[Proof],
    benchmark: CountedBenchmark,
    state: dict[str, str],
    nodes: Sequence[str] = (),
) -> Path:
    """Writes it to evidence/FINGERPRINT-LIBRARY.json, between `nodes` to FINGERPRINT-LIBRARY-nodes.json."""
    name = file_of(results, settings.fingerprint).stem
    file = results / "evidence" / f"{name}-{library}{'-nodes' if nodes else ''}.json"
    write_text_atomically(file, evidence_json(settings, library, proofs, benchmark, state, nodes))
    return file
