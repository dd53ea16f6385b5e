"""Rules on which room of the Python package may import which. The rules are the tables at the top.

A room is a folder of `python/waywiser`, or a file beside the folders that LOOSE names; the other files are `ground`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/waywiser"

LOOSE = {"__init__": "waywiser", "__main__": "__main__", "heap": "heap", "numba": "numba", "triton": "triton"}
# Room -> the rooms that it may import, besides itself and `ground`: at the top, inside functions and for types.
MAY_IMPORT: dict[str, set[str]] = {
    "ground": set(),
    "look": set(),
    "topology": set(),
    "kit": set(),
    "group": set(),
    "heap": {"group"},
    "numba": {"group", "heap"},
    "triton": {"group", "heap"},
    "halo": {"group"},
    "mesh": {"group", "halo"},
    "table": {"group"},
    "storage": {"group"},
    "torch_backend": {"group"},
    "dask_backend": {"group"},
    "monitor": {"look"},
    "doctor": {"look", "monitor"},
    "network": {"look"},
    "simulator": {"topology"},
    "offload": {"group", "monitor"},
    "apply": {"look", "topology", "simulator"},
    "run": {"look", "monitor", "doctor", "apply"},
    "running": {"look", "monitor", "doctor", "run"},
    "bench": {"group", "halo", "look", "topology", "simulator", "offload", "run", "table"},
    "tune": {"look", "topology", "simulator", "apply", "run", "bench", "group"},
    "prove": {"look", "monitor", "apply", "run", "running", "bench"},
    "report": {"topology", "simulator", "apply", "prove"},
    "waywiser": {"group", "halo", "heap", "offload", "storage"},  # the package itself: what programs use
    "cli": {
        *("look", "topology", "kit", "group", "monitor", "doctor", "network", "simulator", "offload", "apply", "run"),
        *("running", "bench", "tune", "prove", "report", "table", "waywiser"),
    },
    "__main__": {"cli"},
}
DATA = ("machines", "schemas")  # folders without Python files that are kept here

# An import inside a function needs a reason. What may be imported so from anywhere:
LAZY_OF = {
    "_core": "the library is loaded on first use: help and the configuration do without it",
    "report.drawing": "needs matplotlib, which is optional",
    "report.pictures": "needs matplotlib, which is optional",
    "mesh.picture": "needs matplotlib, which is optional",
    "torch_backend": "needs torch, which is optional",
    "bench.with_compute_cuda": "needs torch, which is optional",
}
# ... and who may do so:
LAZY_IN = {
    "cli": "`waywiser --help` and every verb start without what only another verb needs",
    "offload.connect": "`import waywiser` does not read plans",
    "offload.roads": "a client without a plan starts no stages",
    "run.launcher": "ranks without settings start at once",
    "run.one_rank": "ranks without settings and --watch start at once",
}
# Two files that know each other, each with the reason. No others, and no circle of more.
PAIRS = {
    ("group.gpus", "group.types"): "for type checkers only: an argument `stream` may be a GpuStream",
    ("mesh.parts", "mesh.picture"): "for type checkers only: MeshParts.plot draws itself",
}


class Import(NamedTuple):
    """Modules without the leading `waywiser.`; the package itself is `__init__`."""

    source: str
    target: str
    lazy: bool
    line: int


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


FILES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str:
    """ "_core", the bindings, is a part of the ground."""
    first = module.split(".")[0]
    return LOOSE.get(first, first if (PACKAGE / first).is_dir() else "ground")


def names_in(node: ast.AST) -> Iterator[str]:
    """The modules of this package that one statement imports."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == "waywiser":
                yield alias.name.removeprefix("waywiser").removeprefix(".") or "__init__"
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "waywiser":
        base = str(node.module).removeprefix("waywiser").removeprefix(".")
        for alias in node.names:
            full = f"{base}.{alias.name}".removeprefix(".")
            yield full if full in FILES or full == "_core" else base or "__init__"


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """Those directly below; no import is in an expression."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        if isinstance(below := getattr(node, part, None), list):
            yield from below


def imports_in(text: str, source: str) -> list[Import]:
    found: list[Import] = []

    def walk(node: ast.AST, lazy: bool) -> None:
        for child in statements_in(node):
            found.extend(Import(source, name, lazy, getattr(child, "lineno", 0)) for name in names_in(child))
            walk(child, lazy or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)))

    walk(ast.parse(text), False)
    return found


def wrong_rooms(imports: Iterable[Import]) -> list[str]:
    wrong = []
    for one in imports:
        room, target = room_of(one.source), room_of(one.target)
        if target not in (room, "ground") and target not in MAY_IMPORT[room]:
            wrong.append(f"{one.source}:{one.line}: {room} may not import {one.target}")
    return wrong


def wrong_lazy(imports: Iterable[Import]) -> list[str]:
    return [
        f"{one.source}:{one.line}: imports {one.target} inside a function, for no reason of this table"
        for one in imports
        if one.lazy
        and not any(under(one.target, name) for name in LAZY_OF)
        and not any(under(one.source, name) for name in LAZY_IN)
    ]


def under(module: str, name: str) -> bool:
    return module == name or module.startswith(f"{name}.")


def circles(edges: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """The groups of names that reach each other."""
    after: dict[str, set[str]] = {}
    for one, other in edges:
        after.setdefault(one, set()).add(other)
    reached = {name: reachable(name, after) for name in after}
    found = {tuple(sorted(o for o in reached[n] if n in reached.get(o, ()))) for n in reached if n in reached[n]}
    return sorted(found)


def reachable(name: str, after: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    rest = list(after.get(name, ()))
    while rest:
        one = rest.pop()
        if one not in found:
            found.add(one)
            rest += after.get(one, ())
    return found


@cache
def all_imports() -> list[Import]:
    return [one for module, path in FILES.items() for one in imports_in(path.read_text(encoding="utf-8"), module)]


def test_the_rules_refuse_what_they_forbid() -> None:
    text = "from waywiser.apply.ucx import x\n"
    text += "def f():\n    from waywiser import report, _core\n    import waywiser.units\n"
    found = imports_in(text, "look.root")
    assert [(one.target, one.lazy) for one in found] == [
        *(("apply.ucx", False), ("report", True), ("_core", True), ("units", True))
    ]
    assert [line.split(": ")[1] for line in wrong_rooms(found)] == [
        *("look may not import apply.ucx", "look may not import report")
    ]
    assert [line.split()[2] for line in wrong_lazy(found)] == ["report", "units"]
    assert circles([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]) == [("a", "b", "c")]


def test_every_room_has_its_place_in_the_table() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert folders == MAY_IMPORT.keys() - {"ground", *LOOSE.values()}


def test_rooms_import_those_that_they_may() -> None:
    assert wrong_rooms(all_imports()) == []


def test_the_table_allows_nothing_that_no_file_needs() -> None:
    used = {(room_of(one.source), room_of(one.target)) for one in all_imports()}
    assert [(room, other) for room, others in MAY_IMPORT.items() for other in others if (room, other) not in used] == []


def test_the_table_has_no_circle() -> None:
    assert circles((room, other) for room, others in MAY_IMPORT.items() for other in others) == []


def test_files_have_no_circle() -> None:
    edges = {(one.source, one.target) for one in all_imports() if one.source != one.target}
    assert circles(edges) == sorted(PAIRS)


def test_an_import_inside_a_function_has_a_reason() -> None:
    assert wrong_lazy(all_imports()) == []


def verbs_in(imports: Iterable[Import], verbs: Iterable[str]) -> list[str]:
    """The verbs that a file of the command line imports."""
    known = {f"cli.{verb}" for verb in verbs}
    return [f"{one.source}:{one.line}: imports the verb {one.target}" for one in imports if one.target in known]


def test_nothing_imports_a_verb() -> None:
    from waywiser.cli import VERBS

    found = imports_in("from waywiser.cli.tune import tune\nfrom waywiser.cli.options import Quick\n", "cli.verify")
    assert verbs_in(found, VERBS) == ["cli.verify:1: imports the verb cli.tune"]
    assert verbs_in(all_imports(), VERBS) == []


def test_every_room_says_what_it_is() -> None:
    assert [room for room in sorted(MAY_IMPORT) if (PACKAGE / room).is_dir() and not readme(room).exists()] == []
    assert [room for room in DATA if not readme(room).exists()] == []


def readme(room: str) -> Path:
    return PACKAGE / room / "README.md"
