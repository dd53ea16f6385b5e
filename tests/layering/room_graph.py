"""The tables of docs/rooms.md: which room includes or imports which, read from the sources of a checkout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/rooms.md"
CPP = {".cpp", ".hpp", ".cu", ".cuh"}
GRAPHS = ("folders of `src/waywiser`", "rooms of `src/waywiser/comm`", "rooms of `python/waywiser`")

Edges = set[tuple[str, str]]


def room(parts: tuple[str, ...], ground: str) -> str:
    return parts[0] if len(parts) > 1 else ground


def include_edges(root: Path, folder: str, ground: str) -> Edges:
    """Room -> room, for the includes in a folder of `src`; its own files are the room `ground`."""
    edges = set()
    for path in sorted((root / "src" / folder).rglob("*")):
        if path.suffix in CPP:
            here = room(path.relative_to(root / "src" / folder).parts, ground)
            for header in re.findall(rf'#\s*include "{folder}/([^"]+)"', path.read_text()):
                edges.add((here, room(tuple(header.split("/")), ground)))
    return edges


def imported(text: str) -> Iterator[tuple[str, ...]]:
    """The names of this package that a file imports anywhere, without the leading `waywiser`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (tuple(name.split(".")[1:]) for name in names if name.split(".")[0] == "waywiser")


def import_edges(root: Path) -> Edges:
    """Room -> room of the Python package: a folder, `waywiser` for the package itself, `ground` for other files."""
    package = root / "python/waywiser"
    files = {path.stem for path in package.glob("*.py")} - {"__init__"}

    def room_of(parts: tuple[str, ...]) -> str:
        first = parts[0] if parts else "__init__"
        if (package / first).is_dir() or first in ("heap", "numba", "triton", "__main__"):
            return first
        return "ground" if first in {"_core", *files} else "waywiser"

    edges = set()
    for path in sorted(package.rglob("*.py")):
        here = room_of(path.relative_to(package).with_suffix("").parts)
        edges |= {(here, room_of(parts)) for parts in imported(path.read_text(encoding="utf-8"))}
    return edges


def graphs(root: Path) -> dict[str, Edges]:
    found = (include_edges(root, "waywiser", ""), include_edges(root, "waywiser/comm", "comm"), import_edges(root))
    return {
        title: {(one, other) for one, other in edges if one and other and one != other}
        for title, edges in zip(GRAPHS, found, strict=True)
    }


def circles(edges: Edges) -> list[list[str]]:
    """The largest sets of rooms that reach each other."""
    reached = {name: reachable(name, edges) for edge in edges for name in edge}
    found = {tuple(sorted(o for o in reached[name] if name in reached[o])) for name in reached if name in reached[name]}
    return [list(each) for each in sorted(found)]


def reachable(name: str, edges: Edges) -> set[str]:
    found: set[str] = set()
    rest = [name]
    while rest:
        here = rest.pop()
        after = {other for one, other in edges if one == here} - found
        found |= after
        rest += after
    return found


def in_order(edges: Edges) -> list[str]:
    """Rooms behind those that they need; in a circle, those with fewer needs first."""
    needs = {name: {other for one, other in edges if one == name} for edge in edges for name in edge}
    order: list[str] = []
    while rest := sorted(needs.keys() - order):
        order.append(min(rest, key=lambda name: (len(needs[name] - set(order)), name)))
    return order


def matrix(edges: Edges) -> Iterable[str]:
    """A row for each room: `x` below what it needs, `o` where that comes later, so that no order has it lower."""
    order = in_order(edges)
    width = max(map(len, order))
    yield " " * (width + 3) + "".join(f"{number:3}" for number in range(1, len(order) + 1))
    for row, name in enumerate(order):
        marks = ["." if (name, other) not in edges else "x" if order.index(other) < row else "o" for other in order]
        marks[row] = "-"
        yield f"{row + 1:2} {name:{width}}" + "".join(f"{mark:>3}" for mark in marks)


def tables(root: Path) -> str:
    """A matrix of each graph, and its circles."""
    parts = []
    for title, edges in graphs(root).items():
        found = circles(edges)
        rooms = len({name for edge in edges for name in edge})
        said = "; ".join(f"one of {len(each)}: {', '.join(each)}" for each in found) or "none"
        head = f"The {title}: {rooms} rooms, {len(edges)} arrows, circles: {said}."
        parts.append("\n".join([head, "", "```", *matrix(edges), "```"]))
    return "\n\n".join(parts) + "\n"


def today(page: str) -> tuple[str, str]:
    """The page up to its tables of today, and these."""
    head, mark, rest = page.partition("<!-- scripts/room_graph writes what follows -->\n")
    return head + mark, rest
