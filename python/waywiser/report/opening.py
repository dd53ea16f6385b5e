"""The opening of the page: the machine, what to do, and a card for each kind of pair."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.profile import Profile
from waywiser.report import sections
from waywiser.report.actions import INSTALL, PROVED, REPAIR, SET, Action
from waywiser.report.choices import Choice
from waywiser.report.markup import Child, Markup, el, join
from waywiser.report.pair_kinds import Kind, kinds
from waywiser.results import Results
from waywiser.units import format_bytes, format_percent, format_rate, format_seconds

_KICKER = "Paths between memories"
_MOST_CARDS = 12
_ON_CARDS = ("streaming", "latency")


def hero(results: Results, title: str, rows: Sequence[Choice], todo: Sequence[Action]) -> Markup:
    """The head of the page."""
    profile = results.needed_profile()
    kicker = f"Recorded machine {results.folder.name}, not measured here" if results.is_recorded else _KICKER
    return el(
        "header",
        el("p", kicker, class_="kicker"),
        el("h1", title),
        el("p", " · ".join(facts(profile)), class_="muted"),
        _to_do(todo),
        _cards(list(rows)),
        class_="hero",
        id="top",
    )


def facts(profile: Profile) -> list[str]:
    """Host name, number of paths, date, fingerprint."""
    counts = [f"{len(profile.paths())} paths {profile.verb}", f"{len(profile.unavailable)} not available"]
    made = profile.created.replace("T", " ").replace("Z", " UTC")
    known = [profile.machine, *counts, f"back end {profile.backend}", *([made] if made else [])]
    return [*known, f"fingerprint {profile.fingerprint}"]


def _to_do(todo: Sequence[Action]) -> Markup:
    parts: list[Child] = [el("h2", "What to do")]
    for kind in (REPAIR, INSTALL, SET, PROVED):
        mine = [one for one in todo if one.kind == kind]
        if mine:
            parts.append(el("div", el("h3", kind), el("ul", map(_item, mine))))
    return el("section", parts, class_="todo", id="todo")


def _item(one: Action) -> Markup:
    more = el("a", "more", href=f"#{one.section}") if one.section else None
    words = el("span", one.text, class_="bad" if one.bad else None)
    return el("li", words, " ", more, el("code", one.command, class_="command") if one.command else None)


def _cards(rows: list[Choice]) -> Markup | None:
    """A card for each kind of pair that differs in what cards show: within one process, with two processes below."""
    rows = [row for row in rows if row.operation in _ON_CARDS]
    found = kinds(rows)
    alone = [kind for kind in found if kind.shown.processes == 1]
    told = {kind.shown.words for kind in alone}
    others = [kind for kind in found if kind.shown.processes == 2]
    shown = [_card(kind, next((o for o in others if o.shown.words == kind.shown.words), None), rows) for kind in alone]
    shown += [_card(kind, None, rows) for kind in others if kind.shown.words not in told]
    cards = [card for card in shown if card]
    rest = len(cards) - _MOST_CARDS
    more = (
        el("p", f"{rest} more kinds of pairs: see ", el("a", "the best paths", href="#best-paths"))
        if rest > 0
        else None
    )
    return join(el("div", cards[:_MOST_CARDS], class_="tiles"), more) if cards else None


def _card(kind: Kind, two: Kind | None, rows: list[Choice]) -> Markup | None:
    fast, quick = _best(kind, rows)
    if fast is None or not fast.rate:
        return None
    share = f"{format_percent(fast.percent)} of the limit" if fast.percent else f"at {format_bytes(fast.last_bytes)}"
    lines: list[Child] = [el("strong", format_rate(fast.rate)), el("p", share, " ", sections.chip(fast.path.mechanism))]
    if quick:
        small = f"{format_seconds(quick.first_seconds)} for {format_bytes(quick.first_bytes)} "
        lines.append(el("p", small, sections.chip(quick.path.mechanism)))
    else:
        lines.append(None)
    lines.append(el("p", _of_two(two, rows), class_="two") if two else None)
    lines.append(el("p", kind.note) if kind.note else None)
    return el("div", el("h3", kind.shown.title), *lines, class_="tile")


def _of_two(two: Kind, rows: list[Choice]) -> str:
    fast, quick = _best(two, rows)
    figures = [format_rate(fast.rate)] if fast and fast.rate else []
    figures += [format_seconds(quick.first_seconds)] if quick else []
    return f"two processes: {', '.join(figures)}"


def _best(kind: Kind, rows: list[Choice]) -> tuple[Choice | None, Choice | None]:
    """The choice for the largest and that for the smallest transfers."""
    mine = [row for row in rows if row.group == kind.shown]
    fast = next((row for row in reversed(mine) if row.operation == "streaming"), None)
    return fast, next((row for row in mine if row.operation == "latency" and row.first_seconds), None)
