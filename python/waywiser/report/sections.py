"""The sections of the page, top to bottom. Each is a function of the values and returns None if it is empty."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from waywiser import _core
from waywiser.plan import PlanRow
from waywiser.profile import Profile, pair_words
from waywiser.report import definitions, palette
from waywiser.report.choices import Choice, choices
from waywiser.report.markup import Child, Markup, el, join, number, table
from waywiser.report.matrices import Matrix, matrices
from waywiser.report.pair_kinds import merged
from waywiser.report.reasons import grouped_reasons
from waywiser.results import Results
from waywiser.units import format_bytes, format_percent, format_range, format_rate, format_seconds

_PROCESSES = {1: "within one process", 2: "between two processes"}


def chip(mechanism: str, label: str = "") -> Markup:
    """A mechanism's name with its colour."""
    look = palette.look(mechanism)
    dot = el("i", style=f"--light:{look.light};--dark:{look.dark}", class_="dot", aria_hidden="true")
    return el("span", dot, label or mechanism, class_="chip", title=_core.mechanisms().get(mechanism))


def styled_path(label: str) -> Markup:
    """A path's label: the mechanism with its colour, the parameters smaller."""
    mechanism, _, rest = label.partition("(")
    parameters = el("small", rest.removesuffix(")").replace(",", ", ")) if rest else None
    return join(chip(mechanism), parameters)


def machine(results: Results, title: str) -> Markup | None:
    """The drawing of the machine under a title."""
    if results.topology is None:
        return None
    from waywiser.report.drawing import drawing_bytes

    data = base64.b64encode(drawing_bytes({**results.topology, "name": title})).decode("ascii")
    picture = el("img", src=f"data:image/svg+xml;base64,{data}", alt="Drawing of the machine and its links")
    return el("div", picture, class_="drawing", tabindex=0)


def _choice_cells(choice: Choice) -> list[Child]:
    second = choice.runner_up
    return [
        el("td", format_range(choice.from_bytes, choice.to_bytes), class_="nowrap"),
        join(chip(choice.path.mechanism), el("small", "parameters by size"))
        if choice.joined
        else styled_path(choice.path.label),
        number(format_seconds(choice.first_seconds), f"at {format_bytes(choice.first_bytes)}")
        if choice.first_seconds
        else number("–"),
        number(format_rate(choice.rate), f"at {format_bytes(choice.last_bytes)}") if choice.rate else number("–"),
        number(format_percent(choice.percent)) if choice.percent is not None else el("td", "–", class_="number none"),
        join(styled_path(second.way), el("small", f"{second.ratio:.2f} × the time")) if second else "–",
        el("td", choice.why, class_="why"),
    ]


_CHOICE_HEAD = ("Sizes", "Path", "Time", "Bandwidth", "Of limit", "Runner-up", "Why")


def glance(rows: list[Choice]) -> Markup | None:
    """The best path of each kind of pair without its parameters: latency and streaming."""
    found = []
    for kind, choice in merged([row for row in rows if row.operation in ("latency", "streaming")]):
        note = f"{_PROCESSES[kind.shown.processes]} {kind.note}".rstrip()
        name = join(kind.shown.words, el("small", note))
        found.append([name, definitions.TITLES[choice.operation], *_choice_cells(choice)[:5]])
    return table(("Pairs", "Operation", *_CHOICE_HEAD[:5]), _blank_repeats(found), class_="stack") if found else None


def _blank_repeats(rows: list[list[Child]]) -> list[list[Child]]:
    """Empties the first two columns of a row if they repeat the row above."""
    shown: list[list[Child]] = []
    above: list[Child] = [None, None]
    for row in rows:
        same_group, same = row[0] == above[0], row[:2] == above[:2]
        cells = [el("td", "" if same_group else row[0], class_="same" if same_group else None), "" if same else row[1]]
        shown.append([*cells, *row[2:]])
        above = row[:2]
    return shown


def _heat_cell(matrix: Matrix, source: str, destination: str) -> Markup:
    cell = matrix.cells.get((source, destination))
    if cell is None:
        return el("td", "·", class_="none")
    share = matrix.share(cell)
    note = el("small", cell.note) if cell.note else None
    classes = [name for name, on in (("copy", not cell.measured), ("odd", cell.odd)) if on]
    if cell.of is not None:
        how = f"not {matrix.verb}: {cell.of[0]} to {cell.of[1]} stands for it"
    else:
        how = f"{matrix.verb}; pairs like it {cell.odd}" if cell.odd else matrix.verb
    return el(
        "td",
        f"≈ {cell.text}" if cell.of is not None else cell.text,
        note,
        class_=" ".join(classes) or None,
        style=f"--share:{share:.3f}",
        title=f"{source} to {destination}: {cell.text}, {cell.detail} {cell.note}; {how}",
    )


def heat_map(matrix: Matrix) -> Markup:
    """One matrix: source down, destination across; the value and the relation in each cell."""
    head = ("from \\ to", *matrix.places)
    rows = [
        [el("th", source, scope="row"), *(_heat_cell(matrix, source, destination) for destination in matrix.places)]
        for source in matrix.sources
    ]
    name = "heat lower" if matrix.lower_is_better else "heat"
    caption = el("figcaption", el("b", matrix.title), " ", matrix.about)
    return el("figure", caption, table(head, rows, class_=name), _legend(matrix))


def _legend(matrix: Matrix) -> Markup:
    """Says which cells have the figure of their own pair, and which pairs are odd."""
    own = len(matrix.cells) - matrix.copies
    words = f"{own} of {len(matrix.cells)} pairs {matrix.verb}."
    if matrix.copies:
        words += f" ≈ with a dashed edge: not {matrix.verb}; the figure of a similar pair according to the topology."
    return el("p", words, *(el("b", f" {line}.", class_="bad") for line in matrix.odd()[:8]), class_="legend")


def heat_maps(results: Results, profile: Profile) -> Markup | None:
    """All matrices, by number of processes."""
    parts: list[Child] = []
    for processes in (1, 2):
        found = matrices(profile, results.plan, processes)
        if found:
            parts += [
                el("h3", _PROCESSES[processes].capitalize()),
                el("div", map(heat_map, found), class_="maps", style=f"--columns:{len(found[0].places) + 1}"),
            ]
    return join(parts) if parts else None


def choice_tables(rows: list[Choice]) -> Markup | None:
    """Every row of the plan, a collapsible part for each class."""
    parts = []
    groups = list(dict.fromkeys(row.group for row in rows))
    for group in groups:
        mine = [row for row in rows if row.group == group]
        tables: list[Child] = []
        for operation in dict.fromkeys(row.operation for row in mine):
            cells = [_choice_cells(row) for row in mine if row.operation == operation]
            tables += [el("h4", definitions.TITLES[operation]), table(_CHOICE_HEAD, cells)]
        summary = el("summary", el("b", group.title), el("small", count_words(len(mine), "range")))
        parts.append(el("details", summary, tables, open=len(groups) <= 2))
    return join(parts) if parts else None


def collectives(results: Results) -> Markup | None:
    """The rows of the plan for collectives, a collapsible part for each memory and number of ranks."""
    rows = results.plan.of_groups() if results.plan else []
    return _row_tables("Collective", rows, lambda row: f"{row.ranks} ranks, {row.memory} memory")


def files(results: Results) -> Markup | None:
    """The rows of the plan for files, a collapsible part for each file system and memory."""
    rows = results.plan.of_files() if results.plan else []
    return _row_tables("Operation", rows, lambda row: f"{row.partner.removeprefix('storage ')}, {row.memory} memory")


def _row_tables(first: str, rows: Sequence[PlanRow], title: Callable[[PlanRow], str]) -> Markup | None:
    parts = []
    titles = list(dict.fromkeys(map(title, rows)))
    for one in titles:
        mine = [row for row in rows if title(row) == one]
        summary = el("summary", el("b", one), el("small", count_words(len(mine), "range")))
        cells = table((first, *_ROW_HEAD), _blank_repeats([_row_cells(row) for row in mine]))
        parts.append(el("details", summary, cells, open=len(titles) <= 2))
    return join(parts) if parts else None


_ROW_HEAD = ("Sizes", "Way", "Time", "At the largest", "Runner-up", "Why")


def _row_cells(row: PlanRow) -> list[Child]:
    (first, soonest), (last, latest) = (row.expected[0], row.expected[-1]) if row.expected else ((0, 0.0), (0, 0.0))
    second = (
        join(row.runner_up.way.replace("_", " "), el("small", f"{row.runner_up.ratio:.2f} × the time"))
        if row.runner_up
        else "–"
    )
    return [
        row.operation.removeprefix("file_").replace("_", "-"),
        el("td", format_range(row.from_bytes, row.to_bytes), class_="nowrap"),
        row.way.replace("_", " "),
        number(format_seconds(soonest), f"at {format_bytes(first)}") if soonest else number("–"),
        number(format_seconds(latest), f"at {format_bytes(last)}") if latest else number("–"),
        second,
        el("td", row.why, class_="why"),
    ]


def unavailable(profile: Profile) -> Markup | None:
    """The unavailable mechanisms and the reasons."""
    rows = [
        [chip(one.mechanism), one.reason, el("td", one.pairs_text(6), class_="pairs", title=one.pairs_text(400))]
        for one in grouped_reasons(profile.unavailable)
    ]
    return table(("Mechanism", "Why", "Pairs"), rows) if rows else None


def rejected(profile: Profile) -> Markup | None:
    """The rejected figures and the reasons."""
    rows = [
        [
            styled_path(one.path.label),
            pair_words(one.path.pair, one.path.processes),
            definitions.TITLES[one.operation],
            number(format_bytes(one.bytes)),
            one.reason,
        ]
        for one in profile.rejected[:500]
    ]
    return table(("Path", "Pair", "Operation", "Size", "Why"), rows) if rows else None


def first_use(profile: Profile) -> Markup | None:
    """The one-time cost of opening a path."""
    slowest = sorted(profile.first_use, key=lambda one: -one.seconds)[:200]
    rows = [
        [
            styled_path(one.path.label),
            pair_words(one.path.pair, one.path.processes),
            number(format_seconds(one.seconds)),
        ]
        for one in slowest
    ]
    if not rows:
        return None
    return el(
        "details",
        el("summary", el("b", "First use"), el("small", count_words(len(rows), "path"))),
        table(("Path", "Pair", "Opening and first 8 B"), rows),
    )


def words() -> Markup:
    """Definitions."""
    operations = [(definitions.TITLES[name], text) for name, text in definitions.OPERATIONS.items()]
    mechanisms = [(chip(name), text) for name, text in _core.mechanisms().items()]
    terms = [*definitions.WORDS.items(), *definitions.RELATIONS.items(), *operations]
    return join(_terms(terms), el("h3", "Mechanisms"), _terms(mechanisms))


def _terms(terms: list[Any]) -> Markup:
    return el("dl", (join(el("dt", term), el("dd", text)) for term, text in terms))


def count_words(count: int, word: str, several: str = "") -> str:
    return f"{count} {word if count == 1 else several or word + 's'}"


def all_choices(results: Results, profile: Profile) -> list[Choice]:
    """The plan's rows joined with the profile; empty without a plan."""
    return choices(profile, results.plan) if results.plan else []
