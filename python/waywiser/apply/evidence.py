"""The measurements of `verify`, kept beside the settings: every round of every variant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from waywiser.apply.prove import Proof
from waywiser.apply.setting import Settings
from waywiser.apply.store import file_of
from waywiser.files import write_text_atomically
from waywiser.stages import now

SCHEMA = "waywiser.evidence"
VERSION = 1


def evidence_json(
    settings: Settings, library: str, proofs: Sequence[Proof], state: dict[str, str], nodes: Sequence[str] = ()
) -> str:
    """All times in seconds by variant, test and size, in the order of the rounds; a step for each proof."""
    steps = []
    for proof in proofs:
        variants = [
            {
                "name": one.name,
                "variables": dict(one.variables),
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


def summary_json(settings: Settings, benchmark: str, proofs: Sequence[Proof]) -> str:
    """The medians in seconds and the verdicts, for programs."""
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
        steps.append({"base": proof.base, "kept": proof.kept, "verdicts": verdicts, "failed": dict(proof.failed),
                      "rows": rows})  # fmt: skip
    kept = {one.name: one.value for one in settings.settings}
    head = {"machine": settings.machine, "benchmark": benchmark, "libraries": settings.versions}
    return json.dumps({**head, "steps": steps, "settings": kept}, indent=1)


def keep_evidence(
    results: Path,
    settings: Settings,
    library: str,
    proofs: Sequence[Proof],
    state: dict[str, str],
    nodes: Sequence[str] = (),
) -> Path:
    """Writes it to evidence/FINGERPRINT-LIBRARY.json, between `nodes` to FINGERPRINT-LIBRARY-nodes.json."""
    name = file_of(results, settings.fingerprint).stem
    file = results / "evidence" / f"{name}-{library}{'-nodes' if nodes else ''}.json"
    write_text_atomically(file, evidence_json(settings, library, proofs, state, nodes))
    return file
