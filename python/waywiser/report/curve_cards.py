"""The cards of the curves: tabs, places of the plots and of the legend, which the script fills."""

from __future__ import annotations

from typing import Any

from waywiser.report import definitions
from waywiser.report.choices import Choice
from waywiser.report.markup import Child, Markup, el, join
from waywiser.report.pair_kinds import kinds
from waywiser.report.sections import count_words

_SCALES = (("relative", "Time ÷ fastest"), ("linear", "Linear bandwidth"))


def _tab(operation: str, drawn: dict[str, Any]) -> str:
    return definitions.TITLES[operation] + (f" ({drawn['at_once']})" if drawn["at_once"] else "")


def curve_cards(curves: list[dict[str, Any]], rows: list[Choice]) -> Markup | None:
    """A card for each kind of pair; those of classes like them are folded away behind it."""
    cards = _curve_cards(curves)
    of_title = {group["title"]: card for group, card in zip(curves, cards, strict=True)}
    parts: list[Child] = []
    for kind in kinds(rows):
        parts.append(of_title.pop(kind.shown.title, None))
        folded = [card for one in kind.others if (card := of_title.pop(one.title, None))]
        if folded:
            count = count_words(len(folded), "class like it", "classes like it")
            summary = el("summary", el("b", count), el("small", f"{kind.shown.title}: within 10 %"))
            parts.append(el("details", summary, folded))
    parts += of_title.values()
    return join(*parts) if cards else None


def _curve_cards(curves: list[dict[str, Any]]) -> list[Markup]:
    """Tabs for the operations, two plots, a legend. The script fills them."""
    cards = []
    for index, group in enumerate(curves):
        tabs = [
            el("button", _tab(name, drawn), type="button", data_operation=name, aria_pressed="false")
            for name, drawn in group["operations"].items()
        ]
        scales = [el("button", text, type="button", data_scale=name, aria_pressed="false") for name, text in _SCALES]
        others = f", stands for {group['pairs']} pairs" if group["pairs"] > 1 else ""
        head = el(
            "header", el("h3", group["title"]), el("p", f"{group['verb']} {group['pair']}{others}", class_="muted")
        )
        plots = [el("div", class_="plot", data_kind=kind) for kind in ("time", "rate")]
        cards.append(
            el(
                "article",
                head,
                el("div", el("div", tabs, class_="tabs"), el("div", scales, class_="tabs"), class_="controls"),
                el("p", class_="muted definition"),
                el("div", plots, class_="plots"),
                el("div", class_="legend"),
                class_="card curves",
                data_group=index,
                id=f"curves-{index}",
            )
        )
    return cards
