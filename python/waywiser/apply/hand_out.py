"""Selects the stored settings for a node: those measured on its type of node and not refuted.

Settings that no benchmark can test are left out. Predictions, from a simulation or a data sheet, need explicit
acceptance.
"""

from __future__ import annotations

from dataclasses import replace

from waywiser.apply.provable import why_never_proved
from waywiser.apply.setting import LeftOut, Setting, Settings

ACCEPT = "--accept-simulated"


def is_prediction(one: Setting) -> bool:
    """Whether the setting is unproved and does not rest on a measurement."""
    return not one.measured and not one.proof


def hand_out(settings: Settings, accept_simulated: bool = False) -> tuple[Settings, tuple[LeftOut, ...]]:
    """The settings to export, and the withheld ones with the reason. A group stays together."""
    why: dict[tuple[str, str], str] = {}
    for one in settings.settings:
        if reason := _why_not(one, accept_simulated):
            why.setdefault((one.target, one.group), reason)
    given = tuple(one for one in settings.settings if (one.target, one.group) not in why)
    withheld = tuple(
        LeftOut(one.target, one.name, one.value, why[one.target, one.group])
        for one in settings.settings
        if (one.target, one.group) in why
    )
    return replace(settings, settings=given), withheld


def _why_not(one: Setting, accept_simulated: bool) -> str:
    if one.proof:
        return ""
    if is_prediction(one):
        return "" if accept_simulated else f"a prediction, not measured; {ACCEPT} exports it"
    return why_never_proved(one)
