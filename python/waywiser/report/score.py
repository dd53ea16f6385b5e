"""The verification of the choices: the tool's score, and the cases, worst first."""

from __future__ import annotations

from waywiser.profile import pair_words
from waywiser.report import definitions
from waywiser.report.markup import Child, Markup, el, join, number, table
from waywiser.report.sections import styled_path
from waywiser.results import Results
from waywiser.units import format_bytes, format_seconds
from waywiser.verification import Verification

SAME_MODEL = "No score: these times are simulated, and the model that chose the paths would only confirm itself."
RATIO = (
    "Time ÷ fastest is the median over rounds that timed both paths side by side. The times are the medians of all "
    "rounds of each path, so their quotient can differ from it where a path has two modes."
)


def verification(results: Results) -> Markup | None:
    """The score, then the cases, worst first. A simulated plan has no score: its times come from the same model."""
    profile, checked = results.needed_profile(), results.verification
    if checked is None or checked.fraction is None:
        return el("p", "Not verified yet: run ", el("code", "waywiser tune"), ".", class_="verdict muted")
    if profile.simulated:
        return el("p", SAME_MODEL, class_="verdict muted")
    return join(_score(checked), _cases(checked))


def _score(checked: Verification) -> Markup:
    fraction, worst = checked.fraction or 0.0, checked.worst_ratio or 1.0
    state = "good" if fraction >= 0.95 else "bad"
    lost = f"The worst case took {100 * (worst - 1):.0f} % longer." if worst > 1.005 else "No case was slower."
    middle = f"The median is {checked.median_ratio:.3f} times the fastest. " if checked.median_ratio else ""
    figure = el("strong", f"{checked.within_5_percent} of {checked.cases}", class_=f"figure {state}")
    text = join(
        f"cases ({100 * fraction:.1f} %) have the chosen path within 5 % of the fastest, ",
        f"at sizes that were not used for choosing. {middle}{lost}",
        f" For {checked.skipped} more cases no time was left." if checked.skipped else "",
    )
    bar = el("span", class_=f"bar {state}", style=f"--share:{fraction:.4f}")
    return el("div", figure, el("p", text), bar, class_="verdict")


def _cases(checked: Verification) -> Markup | None:
    if not checked.rows:
        return None
    rows: list[list[Child]] = []
    for case in checked.rows:
        state = "good" if case.ratio <= 1.05 else "bad"
        note = case.failed or ("equal within the spread" if case.equal and case.chosen != case.best else "")
        rows.append(
            [
                el("td", f"{case.ratio:.3f}", el("small", note) if note else None, class_=f"number {state}"),
                pair_words((case.source, case.destination), case.processes),
                definitions.TITLES[case.operation],
                number(format_bytes(case.bytes)),
                styled_path(case.chosen),
                number(format_seconds(case.chosen_seconds) if case.chosen_seconds else "–"),
                styled_path(case.best),
                number(format_seconds(case.best_seconds) if case.best_seconds else "–"),
            ]
        )
    head = ("Time ÷ fastest", "Pair", "Operation", "Size", "Chosen", "Time", "Fastest", "Time")
    first = table(head, rows[:12])
    rest = (
        el("details", el("summary", f"The other {len(rows) - 12} cases"), table(head, rows[12:])) if rows[12:] else None
    )
    return join(first, rest)
