"""Switches the tuner plug-in of NCCL on: where it is, and the plan that all ranks of a job get with its hash."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import waywiser._core as _core
from waywiser.apply.setting import LeftOut, Setting, Settings
from waywiser.errors import InputError
from waywiser.plan import Plan, PlanRow, read_plan

PLUGINS = Path(__file__).parents[1] / "nccl"
TUNER = PLUGINS / "libnccl-tuner-waywiser.so"
SWITCH, PLAN = "NCCL_TUNER_PLUGIN", "WAYWISER_NCCL_PLAN"
DEFAULT_WAY = "default"  # nothing is written into NCCL's table
# Algorithms whose reductions the switches make, and what they need: NCCL leaves them out below two nodes, and a plan is
# for one.
COLLNET_SWITCH, COLLNET_WAYS = "NCCL_COLLNET_ENABLE", ("CollNetDirect", "CollNetChain")
COLLNET = {COLLNET_SWITCH: "1", "NCCL_COLLNET_NODE_THRESHOLD": "1"}
_MEASURES = "waywiser tune --nccl"


def given(text: str, file: Path) -> str:
    """What ranks get of a plan: its hash and its file. Raises Error."""
    return f"{_core.plan_hash(text, 'NCCL')}:{file.absolute()}"


def rows_for(plan: Plan, version: str) -> list[PlanRow]:
    """The rows for this version of NCCL that do not leave everything to it."""
    return [row for row in plan.rows if row.partner == f"NCCL {version}" and row.way != DEFAULT_WAY]


def with_tuner(settings: Settings, results: Path) -> Settings:
    """With the group that switches the tuner on, if the plan in `results` is for the NCCL that these are about."""
    version = settings.versions.get("nccl", "").split(" ")[0]
    file = results / "plan.json"
    if not version[:1].isdecimal() or not file.exists():
        return settings
    found = _proposed(file, settings.fingerprint, version)
    kept = tuple(one for one in found if isinstance(one, Setting))
    left = tuple(one for one in found if isinstance(one, LeftOut))
    return replace(settings, settings=settings.settings + kept, left_out=settings.left_out + left)


def _proposed(file: Path, fingerprint: str, version: str) -> list[Setting | LeftOut]:
    text = file.read_text(encoding="utf-8")
    plan = read_plan(text.encode("utf-8"), str(file))
    of_nccl = {row.partner for row in plan.rows if row.partner.startswith("NCCL ")}
    why = _why_not(plan, fingerprint, version, of_nccl)
    if why:
        return [LeftOut("nccl", SWITCH, str(TUNER), why)] if of_nccl else []
    variables = {SWITCH: str(TUNER), PLAN: given(text, file)}
    if any(row.way.startswith(COLLNET_WAYS) for row in rows_for(plan, version)):
        variables |= COLLNET
    return [Setting("nccl", name, value, "", _why(plan, version), "tuner") for name, value in variables.items()]


def _why_not(plan: Plan, fingerprint: str, version: str, of_nccl: set[str]) -> str:
    if plan.fingerprint != fingerprint or plan.simulated:
        return f"the plan is not measured on this machine: {_MEASURES}"
    if f"NCCL {version}" not in of_nccl:
        return f"the plan has rows for {', '.join(sorted(of_nccl))}, and jobs use {version}: {_MEASURES}"
    if not rows_for(plan, version):
        return "NCCL's own choices are the fastest here"
    return "" if TUNER.exists() else f"this package has no {TUNER}"


def _why(plan: Plan, version: str) -> str:
    rows, every = rows_for(plan, version), sum(row.partner == f"NCCL {version}" for row in plan.rows)
    gains = [(row.runner_up.ratio, row) for row in rows if row.runner_up]
    told = f"NCCL does not take the fastest way in {len(rows)} of {every} ranges of sizes"
    if not gains:
        return told
    _, row = max(gains, key=lambda one: one[0])
    return f"{told}; {row.operation} of {row.ranks} ranks: {row.way}, {row.why}"


def environment_for(text: str, file: Path) -> dict[str, str]:
    """The variables by which NCCL follows this plan. Raises InputError if the package lacks the plug-in."""
    if not TUNER.exists():
        raise InputError(f"this package has no {TUNER}")
    return {SWITCH: os.fspath(TUNER), PLAN: given(text, file)}
