"""HTML as values: every text is escaped unless it already is Markup."""

from __future__ import annotations

import html
from collections.abc import Iterable

_EMPTY = {"meta", "img", "br", "link"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]


def _render(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, (str, int)):
        return html.escape(str(child))
    return "".join(_render(one) for one in child)


def el(name: str, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """An element. `class_` is the attribute "class", `data_x` is "data-x"; None and False leave an attribute out."""
    shown = ""
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        shown += f" {word}" if value is True else f' {word}="{html.escape(str(value))}"'
    if name in _EMPTY:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{_render(children)}</{name}>")


def join(*children: Child) -> Markup:
    """Children side by side."""
    return Markup(_render(children))


def table(head: Iterable[Child], rows: Iterable[Iterable[Child]], **attributes: str | int | bool | None) -> Markup:
    """A table that scrolls sideways on a narrow screen. A row's cells may be td elements or contents."""
    body = (el("tr", (_cell(cell) for cell in row)) for row in rows)
    inner = el(
        "table", el("thead", el("tr", (el("th", one, scope="col") for one in head))), el("tbody", body), **attributes
    )
    return el("div", inner, class_="scroll", tabindex=0)


def _cell(cell: Child) -> Markup:
    if isinstance(cell, Markup) and cell.startswith(("<td", "<th")):
        return cell
    return el("td", cell)


def number(text: str, note: str = "") -> Markup:
    """A cell with a number, right-aligned, with a small note after it."""
    return el("td", text, el("small", note) if note else None, class_="number")
