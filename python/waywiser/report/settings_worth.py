"""The value of this node type's settings: GPU-hours a year if there is a table of jobs, else per cent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from waywiser import _core
from waywiser.apply.facts import Machine
from waywiser.apply.hand_out import hand_out, is_prediction
from waywiser.apply.propose import settings_for
from waywiser.apply.provable import not_proved
from waywiser.apply.setting import LeftOut, Setting, Settings
from waywiser.apply.store import is_fingerprint, kept
from waywiser.errors import InputError
from waywiser.files import read_bytes
from waywiser.prove.gains import ASSUMED, PREDICTED, PROVED, Gain, NodeGains, expected_gain, proved_gains
from waywiser.prove.savings import Job, Saving, gains_told, read_jobs, savings, seconds_of
from waywiser.prove.savings_table import assumptions
from waywiser.prove.site_use import SiteUse
from waywiser.report.markup import Child, Markup, el, join, number, table
from waywiser.results import Results

NOTHING_SET = "nothing to set: the defaults are best here, as far as measured"
NOT_KNOWN = "No gain is known yet: waywiser verify proves the settings, between nodes with --hosts."


@dataclass(frozen=True)
class JobTable:
    """Jobs of a cluster. `node_type`: the table's name for this kind of node; `share`: fraction of communication if the
    table does not say; `gains`: given gains."""

    jobs: Sequence[Job]
    node_type: str
    share: float
    gains: dict[str, NodeGains] = field(default_factory=dict)
    site: SiteUse = field(default_factory=SiteUse)

    @property
    def mine(self) -> list[Job]:
        """The jobs on this type of node."""
        return [job for job in self.jobs if job.node_type == self.node_type]


def settings_of(results: Results) -> Settings | None:
    """The stored settings of the results' machine; for another machine, the proposed ones."""
    profile = results.needed_profile()
    found = kept(results.folder, profile.fingerprint) if is_fingerprint(profile.fingerprint) else None
    elsewhere = bool(profile.warning()) or results.is_recorded
    if found or not elsewhere or results.topology is None:
        return found
    topology = _core.Topology.from_json(json.dumps(results.topology), "topology.json")
    return settings_for(Machine(topology, profile), unchecked=True)


def gains_of(results: Results, settings: Settings | None, site: SiteUse) -> NodeGains:
    """The proved gains, else those expected from the paths between nodes. Proved ones are against the defaults with the
    sizes of a benchmark: where the site is told, what is expected between nodes comes first."""
    profile = results.needed_profile()
    proved = proved_gains(results.folder, profile.fingerprint).get(profile.machine, NodeGains())
    expected = NodeGains(between=expected_gain(profile, settings, site) if settings else None)
    return expected.or_else(proved) if site.told else proved.or_else(expected)


def worth(results: Results, jobs: JobTable | None) -> Markup | None:
    """The section; None without settings and without a table."""
    settings = settings_of(results)
    gains = gains_of(results, settings, jobs.site if jobs is not None else SiteUse())
    if settings is None and gains == NodeGains() and jobs is None:
        return None
    if jobs is not None:
        gains = jobs.gains.get(jobs.node_type, NodeGains()).or_else(gains)
    head = _hours(jobs, gains) if jobs is not None and jobs.mine else join(_percent(gains), _no_jobs(jobs))
    return join(head, _settings_table(settings))


def _no_jobs(jobs: JobTable | None) -> Markup | None:
    if jobs is None:
        return None
    types = ", ".join(sorted({job.node_type for job in jobs.jobs})) or "none"
    return el("p", f"The table has no jobs of node type {jobs.node_type}; its types: {types}.", class_="muted")


def _basis(gain: Gain | None) -> str:
    return f" ({gain.basis})" if gain and gain.basis != PROVED else ""


def _percent(gains: NodeGains) -> Markup:
    """The saved fraction of communication time."""
    parts: list[Child] = []
    for where, gain in (("within a node", gains.within), ("between nodes", gains.between)):
        if gain is not None:
            figure = el("strong", f"{100 * gain.saved:.1f} %", class_="figure good")
            text = f"of the time in communication {where} is saved: {gain.factor:.2f} times the speed{_basis(gain)}."
            parts += [figure, el("p", text)]
    return el("div", parts, class_="verdict") if parts else el("p", NOT_KNOWN, class_="verdict muted")


def _hours(jobs: JobTable, gains: NodeGains) -> Markup:
    """The saved GPU-hours, and the assumptions."""
    found = savings(jobs.mine, {jobs.node_type: gains}, jobs.share)
    days = seconds_of(jobs.mine) / 86400
    saved = sum(one.saved_a_year if days else one.saved for one in found)
    guessed = sum(one.saved_a_year if days else one.saved for one in found if one.gain and one.gain.basis == PREDICTED)
    of_them = f"; {guessed:,.0f} of them are a prediction from a simulation" if guessed else ""
    period = f"if the year is like the {days:,.0f} days of the table" if days else "in the time of the table"
    text = f"GPU-hours{' a year' if days else ''} are saved by the settings on nodes of type {jobs.node_type}, {period}"
    figure = el("strong", f"{saved:,.0f}", class_="figure good")
    unknown = el("p", NOT_KNOWN, class_="verdict muted")
    head = ("Jobs on", "Jobs", "GPU-hours", "In communication", "Gain", "Saved", "Saved a year")
    lines = assumptions(jobs.mine, found, jobs.share, jobs.site)
    return join(
        el("div", figure, el("p", f"{text}{of_them}."), class_="verdict")
        if any(one.gain for one in found)
        else unknown,
        table(head, [_row(one, bool(days)) for one in found]),
        el("ul", (el("li", line) for line in lines), class_="muted"),
    )


def _row(one: Saving, yearly: bool) -> list[Child]:
    gain = number(f"{one.gain.factor:.2f} ×", one.gain.basis) if one.gain else number("not known")
    figures = (f"{one.jobs:,}", f"{one.gpu_hours:,.0f}", f"{one.communication:,.0f}")
    year = f"{one.saved_a_year:,.0f}" if yearly else "–"
    where = ("several nodes" if one.several else "one node") + (f", {one.program}" if one.program else "")
    return [where, *(number(text) for text in figures), gain, number(f"{one.saved:,.0f}"), number(year)]


def _settings_table(settings: Settings | None) -> Markup | None:
    if settings is None:
        return None
    given, withheld = hand_out(settings, accept_simulated=True)
    rows = [_row_of(one, one.why, _state(one)) for one in given.settings]
    why = {one.name: one.why for one in settings.settings}
    rows += [_row_of(one, why[one.name], f"not exported: {one.why}") for one in withheld]
    if not rows:
        return el("p", NOTHING_SET, class_="muted")
    return join(el("h3", "The settings"), table(("Setting", "Why", "State"), rows))


def _row_of(one: Setting | LeftOut, *texts: str) -> list[Child]:
    """Values and their reasons are long and have few blanks: they may break anywhere."""
    cells: list[Child] = [el("code", f"{one.name}={one.value}"), *texts]
    return [el("td", cell, class_="breaks") for cell in cells]


def _state(one: Setting) -> str:
    if one.proof:
        return f"proved: {one.proof}"
    return (
        "a prediction, not measured: exported only with --accept-simulated" if is_prediction(one) else not_proved(one)
    )


def job_table(
    results: Results, file: Path, share: float, told: list[str], node_type: str, site: SiteUse
) -> tuple[JobTable, list[Saving]]:
    """Reads the jobs and estimates their savings."""
    jobs = read_jobs(read_bytes(file).decode("utf-8", "replace"), str(file))
    known = proved_gains(results.folder)
    types = sorted({job.node_type for job in jobs})
    name = node_type
    if results.file("profile") is not None:
        machine = results.needed_profile().machine
        name = node_type or (types[0] if machine not in types and len(types) == 1 else machine)
        known[name] = gains_of(results, settings_of(results), site)
    elif node_type and len(known) == 1:
        known = {node_type: next(iter(known.values()))}
    if node_type and node_type not in types:
        raise InputError(f"--node-type {node_type!r}: {file} has {', '.join(types) or 'no jobs'}")
    gains_of_types = gains_told(told)
    if nowhere := sorted(gains_of_types.keys() - types):
        raise InputError(f"--gain {nowhere[0]!r}: {file} has {', '.join(types) or 'no jobs'}")
    only = next(iter(known.values())) if len(known) == 1 else NodeGains()

    def assumed(gain: Gain | None) -> Gain | None:
        return Gain(gain.factor, ASSUMED) if gain and gain.basis == PROVED else None

    table = JobTable(jobs, name, share, gains_of_types, site)
    default = NodeGains(assumed(only.within), assumed(only.between))
    gains = {**known, **{of: gain.or_else(known.get(of, NodeGains())) for of, gain in table.gains.items()}}
    return table, savings(jobs, gains, share, default)
