"""The report as one HTML file that opens offline: scripts and data are inside, and nothing is loaded."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from waywiser.profile import Profile
from waywiser.report import definitions, palette, score, sections
from waywiser.report.actions import Action, actions
from waywiser.report.curve_cards import curve_cards
from waywiser.report.curves import all_curves
from waywiser.report.headline import headline
from waywiser.report.markup import Markup, el, join
from waywiser.report.node_charts import node_charts
from waywiser.report.opening import hero
from waywiser.report.peers import peer_tables
from waywiser.report.settings_worth import JobTable, settings_of, worth
from waywiser.report.state import state_table
from waywiser.results import Results

_HERE = Path(__file__).parent


@cache
def _plotly() -> bytes:
    """plotly.min.js of the installed package, read without importing the package (which takes a second)."""
    found = find_spec("plotly")
    folder = Path((found.submodule_search_locations or ["."])[0]) if found else _HERE
    return (folder / "package_data" / "plotly.min.js").read_bytes()


@cache  # plotly is the same for each page
def _packed(name: str, data: bytes) -> Markup:
    text = base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")
    return el("script", Markup(text), type="application/octet-stream", id=name)


def _policy(*scripts: bytes) -> str:
    """Only these scripts may run, and nothing may be fetched."""
    allowed = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one).digest()).decode()}'" for one in scripts)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


def _section(name: str, heading: str, body: Markup | None, about: str = "") -> Markup | None:
    if not body:
        return None
    lead = el("p", about, class_="muted lead") if about else None
    return el("section", el("h2", heading), lead, body, id=name)


def _sections(
    results: Results, profile: Profile, curves: list[dict[str, Any]], jobs: JobTable | None
) -> list[tuple[str, str, Markup | None]]:
    rows = sections.all_choices(results, profile)
    peers = peer_tables(results.peers) if results.peers else None
    method = join(
        sections.words(), el("h3", "State of the machine"), state_table(profile, results), sections.first_use(profile)
    )
    parts = [
        (
            "machine",
            "Machine",
            "The machine",
            sections.machine(results, headline(results.topology, profile.machine)),
            "",
        ),
        (
            "best-paths",
            "Paths",
            "The best paths",
            sections.glance(rows),
            "For each kind of pair and range of sizes: time at the smallest, bandwidth at the largest size.",
        ),
        (
            "nodes",
            "Between nodes",
            "Between nodes: GPUDirect RDMA and GDRCopy",
            node_charts(profile),
            "The best of four settings. One for all sizes: for latency the one with the most messages per second, "
            "for bandwidth the one with the most bytes, for mixed use the one with the smallest worst loss.",
        ),
        (
            "matrices",
            "Matrices",
            "Pair by pair",
            sections.heat_maps(results, profile),
            "Small print: how the two are connected.",
        ),
        (
            "curves",
            "Curves",
            "Every path, every size",
            curve_cards(curves, rows),
            "Wide band: the chosen path. Strip on top: its mechanism. Dashed line: the limit of the slowest hop.",
        ),
        (
            "settings",
            "Settings",
            "What the settings are worth",
            worth(results, jobs),
            "Of UCX, Open MPI, MPICH and NCCL on this node type, against the defaults.",
        ),
        ("choices", "Choices", "The choices and their reasons", sections.choice_tables(rows), ""),
        (
            "collectives",
            "Collectives",
            "The algorithms of collectives",
            sections.collectives(results),
            "Between processes of this machine. Sizes: one rank's block, or the whole in a broadcast or reduction.",
        ),
        (
            "files",
            "Files",
            "The ways to files",
            sections.files(results),
            "Of each file system that `waywiser tune --storage` measured; of read-many the size is that of one part.",
        ),
        (
            "verification",
            "Verification",
            "Verification",
            score.verification(results),
            "" if profile.simulated else f"Chosen path against every other, worst first. {score.RATIO}",
        ),
        ("peers", "Peers", "Peer report", peers, "Between GPUs, with peer access off and on."),
        ("unavailable", "Unavailable", "Not available, and why", sections.unavailable(profile), ""),
        (
            "rejected",
            "Rejected",
            "Rejected figures",
            sections.rejected(profile),
            "Measured, but not plausible: never used for a choice.",
        ),
        ("method", "Method", "Method and machine state", method, ""),
    ]
    return [(name, short, _section(name, heading, body, about)) for name, short, heading, body, about in parts]


def _data(curves: list[dict[str, Any]]) -> bytes:
    looks = {name: [look.light, look.dark, look.symbol] for name, look in palette.MECHANISMS.items()}
    other = [palette.OTHER.light, palette.OTHER.dark, palette.OTHER.symbol]
    value = {
        "groups": curves,
        "looks": looks,
        "other": other,
        "dashes": palette.DASHES,
        "definitions": definitions.OPERATIONS,
    }
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _existing(todo: list[Action], sections_there: set[str]) -> list[Action]:
    """Without links to sections that this page lacks."""
    return [one if one.section in sections_there else replace(one, section="") for one in todo]


def render(results: Results, jobs: JobTable | None = None) -> str:
    """The whole page. Raises InputError for files of `results` that cannot be read."""
    profile = results.needed_profile()
    curves = all_curves(profile, results.plan)
    parts = [(name, short, body) for name, short, body in _sections(results, profile, curves, jobs) if body]
    plotly, script = _plotly(), (_HERE / "page.js").read_bytes()
    warning = profile.warning()
    title = headline(results.topology, profile.machine)
    todo = _existing(actions(results, settings_of(results)), {name for name, _, _ in parts})
    opening = hero(results, title, sections.all_choices(results, profile), todo)
    navigation = el(
        "nav",
        el("a", "Waywiser", href="#top", class_="brand"),
        el("div", (el("a", short, href=f"#{name}") for name, short, _ in parts)),
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(plotly, script)),
        el("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name_="color-scheme", content="light dark"),
        el("title", f"{title} - Waywiser"),
        el("style", Markup((_HERE / "page.css").read_text(encoding="utf-8"))),
    )
    banner = el("div", warning, class_="banner", role="alert") if warning else None
    failed = el(
        "p",
        "The curves need a browser with scripts switched on; the same plots are in the folder plots/.",
        class_="noplots",
        id="noplots",
    )
    body = el(
        "body",
        banner,
        navigation,
        el("main", opening, failed, (body for _, _, body in parts)),
        el("footer", "Written by Waywiser. This file is complete and loads nothing."),
        _packed("plotly", plotly),
        _packed("data", _data(curves)),
        el("script", Markup(script.decode("utf-8"))),
    )
    return "<!doctype html>\n" + el("html", head, body, lang="en") + "\n"
