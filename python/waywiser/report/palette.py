"""One colour and marker for each mechanism, the same in every plot; colour-blind readers can tell them apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """Colours on white and on dark paper; the marker's name in Plotly and in Matplotlib."""

    light: str
    dark: str
    symbol: str
    marker: str


MECHANISMS: dict[str, Look] = {
    "host_copy": Look("#332288", "#a094f0", "circle", "o"),
    "copy_engine": Look("#0072b2", "#56b4e9", "square", "s"),
    "sm_copy": Look("#d55e00", "#ff9248", "triangle-up", "^"),
    "host_staged": Look("#117733", "#4fc47a", "diamond", "D"),
    "bar_copy": Look("#882255", "#e07bb0", "cross", "P"),
    "courier": Look("#b8860b", "#f0c240", "star", "*"),
    "relay": Look("#44aa99", "#6fd6c4", "triangle-down", "v"),
    "split": Look("#aa4499", "#e690d8", "hexagon", "h"),
    "ucx": Look("#cc3355", "#ff7f92", "x", "X"),
    "ucx_staged": Look("#8a5a2b", "#d9a066", "bowtie", "d"),
    "tls": Look("#557a00", "#a8cc4f", "hourglass", "p"),
}
OTHER = Look("#5c6670", "#9aa5b0", "pentagon", "p")

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
STYLES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", "--", ":", "-.", (0, (7, 2)), (0, (7, 2, 1, 2)))


def look(mechanism: str) -> Look:
    """The look of a mechanism; grey if it is unknown."""
    return MECHANISMS.get(mechanism, OTHER)


def order(mechanism: str) -> int:
    """Position in legends."""
    names = list(MECHANISMS)
    return names.index(mechanism) if mechanism in names else len(names)
