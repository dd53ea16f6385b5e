"""Rows of a plan that are not about groups of this machine: of a server's GPU, of another library. They are chosen from
their own series, and kept in the plan in place of those of the same partner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import waywiser._core as _core
from waywiser import stages
from waywiser.errors import InputError
from waywiser.file_lock import held_file
from waywiser.files import read_bytes, write_text_atomically
from waywiser.plan import Plan, read_plan


def chosen_plan(
    series: Sequence[dict[str, Any]],
    backend: str,
    hysteresis: Mapping[str, float] = {},
    simulated: _core.Topology | None = None,
) -> dict[str, Any]:
    """A plan for this machine, or for a simulated one, that has nothing but the rows for `series`. `hysteresis`: as in
    `_core.choose`."""
    machine = _core.discover() if simulated is None else simulated
    about = {"fingerprint": machine.fingerprint, "machine": machine.name, "backend": backend}
    nothing = ("classes", "series", "searched", "first_use", "unavailable", "rejected", "other_nodes")
    head = {"schema": "waywiser.profile", "version": 2, "created": stages.now(), "state": {}}
    profile = {
        **head,
        **about,
        "simulated": simulated is not None,
        **{key: [] for key in nothing},
        "collectives": list(series),
    }
    plan: dict[str, Any] = json.loads(_core.choose(json.dumps(profile), json.dumps(dict(hysteresis))))
    return plan


def keep_rows(file: Path, partner: str, chosen: dict[str, Any], ranks: int = 0) -> Plan:
    """Writes the rows of `chosen` into the plan, in place of those of this partner; the plan that it is then. With
    `ranks`: in place of those for as many ranks, and a plan of another machine is refused. Raises InputError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with held_file(file.with_suffix(".lock")) as holder:
        if holder:
            raise InputError(f"{file}: {holder} writes it")
        if file.exists():
            before = read_bytes(file)
            old = read_plan(before, str(file))
            here = (chosen["fingerprint"], chosen["simulated"])
            if (ranks or chosen["simulated"]) and (old.fingerprint, old.simulated) != here:
                where = f"of a simulated {chosen['machine']}" if chosen["simulated"] else "measured on this machine"
                raise InputError(f"{file}: is not {where}: choose another folder with --results")
            whole = json.loads(before)
            others = [
                row for row in whole["rows"] if row.get("partner") != partner or (ranks and row["ranks"] != ranks)
            ]
            chosen = {**whole, "rows": [*others, *chosen["rows"]]}
        text = json.dumps(chosen, indent=1) + "\n"
        write_text_atomically(file, text)
    return read_plan(text.encode("utf-8"), str(file))
