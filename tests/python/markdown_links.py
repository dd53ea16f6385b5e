"""The links of Markdown pages, parsed like GitHub, and the error of each. Does not use the network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

OUTSIDE = re.compile(r"(https?|mailto):")
OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
# `[text][name]` and `[text][]` stay text if no line `[name]: target` defines the name.
UNDEFINED = re.compile(r"\[[^\[\]]+\]\[([^\[\]]*)\]")
LINE = re.compile(r"L(\d+)(?:-L(\d+))?")


class _Html(HTMLParser):
    """Targets and anchors of HTML inside Markdown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.append(value or "")
            elif name in ("href", "src"):
                self.targets.append(value or "")


def _tokens(page: Path) -> Iterator[Token]:
    """All tokens of a page, including those inside a line."""
    reader = MarkdownIt("commonmark").enable("table")
    reader.validateLink = lambda url: True  # type: ignore[method-assign]  # else a link to file:///x is text
    for token in reader.parse(page.read_text(encoding="utf-8")):
        yield token
        yield from token.children or []


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading: lower case, hyphens for spaces, without punctuation."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, a repeated one with -1, -2 and so on, and those that HTML sets."""
    found: set[str] = set()
    in_heading = False
    for token in _tokens(page):
        if token.type in ("html_block", "html_inline"):
            found.update(_Html(token.content).anchors)
        if in_heading and token.type == "inline":
            words = [part.content for part in token.children or [] if part.type in ("text", "code_inline")]
            first = name = slug("".join(words))
            repeated = 0
            while name in found:
                repeated += 1
                name = f"{first}-{repeated}"
            found.add(name)
        in_heading = token.type == "heading_open"
    return frozenset(found)


def targets(page: Path) -> Iterator[str]:
    """The targets of the links, images and HTML of a page, in the page's order."""
    for token in _tokens(page):
        if token.type in ("link_open", "image"):
            yield str(token.attrs["href" if token.type == "link_open" else "src"])
        elif token.type in ("html_block", "html_inline"):
            yield from _Html(token.content).targets


def wrong_with(target: str, page: Path, root: Path) -> str | None:
    """Why the link `target` of `page` is broken; None if it is not, or if it names a host."""
    if OUTSIDE.match(target):
        return None
    if OTHER_SCHEME.match(target) or target.startswith("/"):
        return "names a place of one machine"
    path, _, anchor = unquote(target).partition("#")
    file = (page.parent / path).resolve() if path else page.resolve()
    if not file.is_relative_to(root.resolve()):
        return "leaves the repository"
    if not file.exists():
        return "there is no such file"
    if file.suffix == ".md":
        return f"{file.name} has no such heading" if anchor and anchor not in anchors(file) else None
    if line := LINE.fullmatch(anchor):
        last = max(int(number) for number in line.groups() if number)
        return None if last <= len(file.read_text(encoding="utf-8").splitlines()) else "the file has fewer lines"
    return f"{file.name} has no headings" if anchor else None


def broken_links(page: Path, root: Path) -> list[str]:
    """One line for each link of `page` that leads nowhere: its target and why."""
    found = [f"{target}: {wrong}" for target in targets(page) if (wrong := wrong_with(target, page, root))]
    for token in _tokens(page):
        if token.type == "text":
            found += [f"{undefined[0]}: is not defined" for undefined in UNDEFINED.finditer(token.content)]
    return found
