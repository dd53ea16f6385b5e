"""What the results ask their reader to do: repair what is slow or broken, set what was found, and what was proved.

Each statement comes with the command that shows or does it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from waywiser.apply.hand_out import hand_out, is_prediction
from waywiser.apply.provable import not_proved
from waywiser.apply.setting import Settings
from waywiser.profile import Profile, pair_words
from waywiser.report.drawing_text import link_warning, trained_words
from waywiser.report.matrices import matrices
from waywiser.report.reasons import grouped_reasons
from waywiser.results import DEFAULT, Results
from waywiser.units import format_percent

REPAIR, INSTALL, SET, PROVED = "Slow or broken", "Not available here", "To set", "Proved"
# Mechanism -> the doctor's checks that say how to get it.
_CHECKS = {"bar_copy": "GDRCopy", "ucx": "NIC,libraries", "ucx_staged": "NIC,libraries", "tls": "D45"}
_MOST = 6
# Reasons that an installation or a permission removes; the others lie in the path itself.
_CURABLE = re.compile(r"install|open|load|No such|permitted|permission|denied|no transport|may not", re.IGNORECASE)


@dataclass(frozen=True)
class Action:
    """One statement; `command` is empty if there is nothing to type, `section` names the part of the page with more."""

    kind: str
    text: str
    command: str = ""
    section: str = ""
    bad: bool = False


def where(results: Results) -> str:
    """The options that make a verb use these results: "" for the default folder, " --machine hse-c"."""
    if results.is_recorded:
        return f" --machine {results.folder.name}"
    profile = results.needed_profile()
    if profile.simulated:
        return f" --machine {shlex.quote(profile.machine)}"
    return "" if results.folder == DEFAULT else f" --results {shlex.quote(str(results.folder))}"


def actions(results: Results, settings: Settings | None) -> list[Action]:
    """All statements, those about damage first."""
    profile = results.needed_profile()
    repairs = [*_damaged(profile), *_links(results), *_peers(results), *_odd(profile, where(results))]
    if len(repairs) > _MOST:
        rest = len(repairs) - _MOST
        repairs = [*repairs[:_MOST], Action(REPAIR, f"{rest} more: see the sections below", "", "matrices", True)]
    if not repairs:
        repairs = [_nothing(profile)]
    return [*repairs, *_missing(profile), *_to_set(settings, results), *_proved(results, settings)]


def _nothing(profile: Profile) -> Action:
    if profile.warning():
        return Action(REPAIR, "Nothing in this simulation.")
    text = "Nothing in these measurements. The doctor also looks at driver, PCIe, NICs and libraries."
    return Action(REPAIR, text, "waywiser doctor")


def _damaged(profile: Profile) -> Iterator[Action]:
    wrong = dict.fromkeys(
        pair_words(one.path.pair, one.path.processes) for one in profile.rejected if "intact" in one.reason
    )
    if wrong:
        pairs = "; ".join(list(wrong)[:4]) + (f"; and {len(wrong) - 4} more" if len(wrong) > 4 else "")
        text = f"Data did not arrive intact: {pairs}."
        yield Action(REPAIR, text, "waywiser doctor --only D11,D09,D10", "rejected", True)


def _links(results: Results) -> Iterator[Action]:
    topology: dict[str, Any] = results.topology or {}
    slow = [link for link in topology.get("links", []) if link["kind"] == "pcie" and link_warning(link)]
    for link in slow:
        text = f"The link {link['a']} - {link['b']} runs below its best: {trained_words(link)}."
        yield Action(REPAIR, text, "waywiser doctor --only D12", "machine", True)
    for device in topology.get("devices", []):
        told = device.get("attributes", {})
        active, have = told.get("nvlinks_active", ""), told.get("nvlinks", "")
        if active.isdecimal() and have.isdecimal() and int(active) < int(have):
            text = f"{active} of {have} NVLinks of {device['id']} are up."
            yield Action(REPAIR, text, "waywiser doctor --only D13", "machine", True)


def _peers(results: Results) -> Iterator[Action]:
    table = (results.peers or {}).get("connectivity")
    rows = table if isinstance(table, list) and all(isinstance(row, list) for row in table) else []
    lost = [f"gpu{i} to gpu{j}" for i, row in enumerate(rows) for j, one in enumerate(row) if i != j and one is False]
    if lost:
        more = f" and {len(lost) - 4} more" if len(lost) > 4 else ""
        text = f"No peer access for {', '.join(lost[:4])}{more}: copies go through the host."
        yield Action(REPAIR, text, "waywiser doctor --only D11,D09,D10", "peers", True)


def _odd(profile: Profile, at: str) -> Iterator[Action]:
    for processes in (1, 2):
        for matrix in matrices(profile, None, processes):
            for (source, destination), cell in matrix.cells.items():
                if cell.odd:
                    text = f"{source} to {destination} is odd: {matrix.title.lower()} {cell.text}, pairs like it "
                    command = f"waywiser place --gpus 2{at}" if source.startswith("gpu") else "waywiser doctor"
                    yield Action(REPAIR, f"{text}{cell.odd}. Placement avoids it.", command, "matrices", True)


def _missing(profile: Profile) -> list[Action]:
    found = []
    for one in grouped_reasons(profile.unavailable):
        checks = _CHECKS.get(one.mechanism)
        if checks and not profile.warning() and _CURABLE.search(one.reason):
            text = f"{one.mechanism} is not available ({one.pairs_text(1)}): {one.reason}"
            found.append(Action(INSTALL, text, f"waywiser doctor --only {checks}", "unavailable"))
    return found[:3]


def _to_set(settings: Settings | None, results: Results) -> list[Action]:
    at, here = where(results), "" if results.is_recorded else where(results)
    if settings is None:
        text = "No settings of UCX, Open MPI, MPICH or NCCL were derived from these results yet."
        return [Action(SET, text, f"waywiser apply{at}")]
    given, _ = hand_out(settings, accept_simulated=True)
    proved = [one for one in given.settings if one.proof]
    open_ = [one for one in given.settings if not one.proof]
    found = []
    if proved:
        names = ", ".join(f"{one.name}={one.value}" for one in proved[:4]) + (", ..." if len(proved) > 4 else "")
        text = f"{_count(len(proved), 'setting')} won against the default: {names}."
        found.append(Action(SET, text, f'eval "$(waywiser env --proved{here})"', "settings"))
    if open_ and all(is_prediction(one) for one in open_):
        text = f"{_count(len(open_), 'predicted setting')}: to be proved on such a machine, which tune measures."
        found.append(Action(SET, text, f"waywiser apply{at}", "settings"))
    elif open_:
        text = f"{_count(len(open_), 'setting')} not proved yet: verify tries each against the default."
        commands = dict.fromkeys(not_proved(one).rpartition(": ")[2] + here for one in open_)
        found += [Action(SET, text, command, "settings") for command in commands][:2]
    return found or [Action(SET, "Nothing: the defaults of UCX, Open MPI, MPICH and NCCL are best here.")]


def _proved(results: Results, settings: Settings | None) -> list[Action]:
    profile = results.needed_profile()
    if profile.warning():
        return [Action(PROVED, "Nothing: these figures were not measured on such a machine. There:", "waywiser tune")]
    found = [Action(PROVED, f"{one.name}={one.value}: {one.proof}", "", "settings") for one in _won(settings)][:3]
    points = [point for one in profile.series for point in one.points]
    whole = sum(point.verified for point in points)
    text = f"The data of {whole:,} of {len(points):,} timed transfers was compared and arrived intact."
    found.append(Action(PROVED, text, "", "method"))
    checked = results.verification
    if checked is not None and checked.fraction is not None:
        text = f"{format_percent(checked.fraction)} of the chosen paths are within 5 % of the fastest at other sizes."
        found.append(Action(PROVED, text, "", "verification"))
    else:
        found.append(Action(PROVED, "The choice of paths was not verified yet.", "waywiser tune", "choices"))
    return found


def _won(settings: Settings | None) -> list[Any]:
    return [one for one in settings.settings if one.proof] if settings else []


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
