"""Checks built HTML pages: every link and anchor has a target, and nothing is fetched from the network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
_OF_CSS = re.compile(r"""(?:url\(|@import\s+)\s*['"]?((?:https?:)?//[^'")]+)""")


class Page(HTMLParser):
    """Ids, links and words of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.words: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        told = dict(attributes)
        self.ids.update(value for name in ("id", "name") if (value := told.get(name)))
        if tag in _FETCHED and (target := told.get(_FETCHED[tag])):
            self.fetched.append(target)
        elif tag == "a" and (target := told.get("href")):
            self.links.append(target)

    def handle_data(self, text: str) -> None:
        self.words.append(text)


def read_site(folder: Path) -> dict[Path, Page]:
    """Every HTML page below a folder."""
    return {file.resolve(): Page(file) for file in sorted(folder.rglob("*.html"))}


def _wrong(target: str, file: Path, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    other = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if not other.is_file():
        return "there is no such file"
    if parts.fragment and other in pages and unquote(parts.fragment) not in pages[other].ids:
        return "there is no such anchor"
    return None


def broken(folder: Path, pages: dict[Path, Page]) -> list[str]:
    """One line for each link without a target and for each resource that one of the `pages` below `folder` would fetch
    from the network."""
    found = []
    for file, page in pages.items():
        name = file.relative_to(folder.resolve())
        for target in [*page.links, *page.fetched]:
            if wrong := _wrong(target, file, pages):
                found.append(f"{name}: {target}: {wrong}")
        found += [f"{name}: {each}: is fetched from the network" for each in page.fetched if urlsplit(each).netloc]
    for style in sorted(folder.rglob("*.css")):
        fetched = _OF_CSS.findall(style.read_text(encoding="utf-8"))
        found += [f"{style.name}: {each}: is fetched from the network" for each in fetched]
    return list(dict.fromkeys(found))
