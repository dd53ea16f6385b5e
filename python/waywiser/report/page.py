"""The report as one HTML file that opens offline: scripts and data are inside, and nothing is loaded."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from waywiser.checked import clean
from waywiser.profile import Profile
from waywiser.report import definitions, palette, sections
from waywiser.report.choices import Choice
from waywiser.report.curves import all_curves
from waywiser.report.markup import Markup, el, join, table
from waywiser.report.node_charts import node_charts
from waywiser.report.peers import peer_tables
from waywiser.report.worth import JobTable, worth
from waywiser.results import Results
from waywiser.units import format_bytes, format_percent, format_rate, format_seconds

_HERE = Path(__file__).parent


def _plotly() -> bytes:
    """plotly.min.js of the installed package, read without importing the package (which takes a second)."""
    found = find_spec("plotly")
    folder = Path((found.submodule_search_locations or ["."])[0]) if found else _HERE
    return (folder / "package_data" / "plotly.min.js").read_bytes()


def _packed(name: str, data: bytes) -> Markup:
    text = base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")
    return el("script", Markup(text), type="application/octet-stream", id=name)


def _policy(*scripts: bytes) -> str:
    """Only these scripts may run, and nothing may be fetched."""
    allowed = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one).digest()).decode()}'" for one in scripts)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


def _verdict(results: Results) -> Markup:
    checked = results.verification
    if checked is None or checked.fraction is None:
        return el("p", "Not verified yet: run ", el("code", "waywiser tune"), ".", class_="verdict muted")
    state = "good" if checked.fraction >= 0.95 else "bad"
    worst = checked.worst_ratio or 1.0
    lost = f"The worst case took {100 * (worst - 1):.0f} % longer." if worst > 1.005 else "No case was slower."
    middle = f"The median is {checked.median_ratio:.3f} times the fastest. " if checked.median_ratio else ""
    figure = el("strong", f"{checked.within_5_percent} of {checked.cases}", class_=f"figure {state}")
    text = join(
        f"cases ({100 * checked.fraction:.1f} %) have the chosen path within 5 % of the fastest, ",
        f"at sizes that were not used for choosing. {middle}{lost}",
        f" For {checked.skipped} more cases no time was left." if checked.skipped else "",
    )
    bar = el("span", class_=f"bar {state}", style=f"--share:{checked.fraction:.4f}")
    return el("div", figure, el("p", text), bar, class_="verdict")


def _tiles(rows: list[Choice]) -> Markup | None:
    tiles = []
    for group in dict.fromkeys(row.group for row in rows):
        fast = next((row for row in reversed(rows) if row.group == group and row.operation == "streaming"), None)
        quick = next(
            (row for row in rows if row.group == group and row.operation == "latency" and row.first_seconds), None
        )
        if fast is None or not fast.rate:
            continue
        share = (
            f"{format_percent(fast.percent)} of the limit" if fast.percent else f"at {format_bytes(fast.last_bytes)}"
        )
        small = (
            el(
                "p",
                format_seconds(quick.first_seconds),
                f" for {format_bytes(quick.first_bytes)} ",
                sections.chip(quick.path.mechanism),
            )
            if quick
            else None
        )
        tiles.append(
            el(
                "div",
                el("h3", group.title),
                el("strong", format_rate(fast.rate)),
                el("p", share, " ", sections.chip(fast.path.mechanism)),
                small,
                class_="tile",
            )
        )
    return el("div", tiles, class_="tiles") if tiles else None


def _state(profile: Profile, results: Results) -> Markup:
    rows = [["Machine", profile.machine], ["Fingerprint", profile.fingerprint], ["Back end", profile.backend]]
    rows += [["Measured", profile.created]]
    topology = results.topology or {}
    rows += _flat(topology.get("software", {}), "software")
    rows += _flat(profile.state)
    notes = topology.get("notes")
    rows += [["note", clean(note)] for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    return table(("What", "Value"), rows[:400], class_="state")


def _flat(value: Any, name: str = "", depth: int = 0) -> list[list[str]]:
    if isinstance(value, dict) and depth < 6:
        return [row for key, one in value.items() for row in _flat(one, f"{name} {clean(str(key))}".strip(), depth + 1)]
    text = clean(value if isinstance(value, str) else json.dumps(value, default=str))
    return [[name.replace("_", " "), text[:500]]]


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
        sections.words(), el("h3", "State of the machine"), _state(profile, results), sections.first_use(profile)
    )
    parts = [
        ("machine", "Machine", "The machine", sections.machine(results), ""),
        (
            "roads",
            "Paths",
            "The best paths",
            sections.glance(profile, rows),
            "For each class of pairs and range of sizes.",
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
            sections.curve_cards(curves),
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
            "verification",
            "Verification",
            "Verification",
            sections.verification(results),
            "Chosen path against every other, side by side, worst first.",
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


def render(results: Results, jobs: JobTable | None = None) -> str:
    """The whole page. Raises InputError for files of `results` that cannot be read."""
    profile = results.needed_profile()
    curves = all_curves(profile, results.plan)
    parts = [(name, short, body) for name, short, body in _sections(results, profile, curves, jobs) if body]
    plotly, script = _plotly(), (_HERE / "page.js").read_bytes()
    warning = profile.warning()
    navigation = el(
        "nav",
        el("a", "Waywiser", href="#top", class_="brand"),
        el("div", (el("a", short, href=f"#{name}") for name, short, _ in parts)),
    )
    hero = el(
        "header",
        el("p", "Paths between memories", class_="kicker"),
        el("h1", profile.machine),
        el("p", " · ".join(_facts(profile)), class_="muted"),
        _verdict(results),
        _tiles(sections.all_choices(results, profile)),
        class_="hero",
        id="top",
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(plotly, script)),
        el("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name_="color-scheme", content="light dark"),
        el("title", f"{profile.machine} - Waywiser"),
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
        el("main", hero, failed, (body for _, _, body in parts)),
        el("footer", "Written by Waywiser. This file is complete and loads nothing."),
        _packed("plotly", plotly),
        _packed("data", _data(curves)),
        el("script", Markup(script.decode("utf-8"))),
    )
    return "<!doctype html>\n" + el("html", head, body, lang="en") + "\n"


def _facts(profile: Profile) -> list[str]:
    done = "simulated" if profile.simulated else "measured"
    counts = [f"{len(profile.paths())} paths {done}", f"{len(profile.unavailable)} not available"]
    made = profile.created.replace("T", " ").replace("Z", " UTC")
    return [*counts, f"back end {profile.backend}", *([made] if made else []), f"fingerprint {profile.fingerprint}"]
