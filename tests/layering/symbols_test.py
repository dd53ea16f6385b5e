"""The order of the folders, checked by what the built objects define and use: no include tells of a function that is
declared in one folder and defined in another."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from layering_test import MAY_INCLUDE, ROOT, SOURCES, cpp_files, without_comments

BUILD = ROOT / "build"
CORE = "waywiser_core.dir/"
STRONG = set("TDBRGS")

Symbols = dict[str, set[str]]  # of each folder


def upward_uses(defined: Symbols, undefined: Symbols, may_use: dict[str, set[str]]) -> list[tuple[str, str, str]]:
    """Folder, symbol, and the folder that defines it, for what a folder takes from one that it may not include."""
    home = {symbol: folder for folder, symbols in defined.items() for symbol in symbols}
    return sorted(
        (folder, symbol, home[symbol])
        for folder, symbols in undefined.items()
        for symbol in symbols & home.keys()
        if home[symbol] != folder and home[symbol] not in may_use[folder]
    )


def scope_of(function: str) -> list[str]:
    """Namespaces and classes around a demangled function: waywiser, Group, State of "waywiser::Group::State::run()"."""
    plain = function.split("operator")[0]
    while (shorter := re.sub(r"<[^<>]*>", "", plain)) != plain:
        plain = shorter
    return plain.split("(")[0].split(" ")[-1].split("::")[:-1]


def members_elsewhere(functions: Symbols, classes: Symbols) -> list[str]:
    """Member functions that a folder defines of classes that stand in headers of others. `classes`: name -> folders."""
    wrong = []
    for folder, names in functions.items():
        for name in sorted(names):
            owner = next((part for part in scope_of(name) if part in classes), None)
            if owner is not None and folder not in classes[owner]:
                wrong.append(f"{folder} defines {name}, a member of a class of {', '.join(sorted(classes[owner]))}")
    return wrong


def classes_in_headers() -> Symbols:
    pattern = re.compile(r"\b(?:class|struct)\s+(?:\[\[[^\n]*?\]\]\s*)?((?:\w+::)*\w+)\s*(?:final\s*)?(?::[^;{]*)?\{")
    classes: Symbols = defaultdict(set)
    for path in cpp_files():
        if path.suffix in {".hpp", ".cuh"}:
            for name in pattern.findall(without_comments(path.read_text())):
                classes[name.split("::")[0]].add(path.relative_to(SOURCES).parts[0])
    return classes


def folder_of(source: Path) -> str:
    """Of src/waywiser: the one that all C++ files of an object are in, be it one file or two dozen that CMake joins."""
    joined = re.findall(r'#include "([^"]+\.cpp)"', source.read_text()) if "Unity" in source.parts else [str(source)]
    folders = {Path(path).relative_to(SOURCES).parts[0] for path in joined}
    assert len(folders) == 1, f"{source} joins files of {sorted(folders)}"
    return folders.pop()


def built_objects() -> list[tuple[str, Path]]:
    commands = BUILD / "compile_commands.json"
    if not commands.exists() or shutil.which("nm") is None or shutil.which("c++filt") is None:
        pytest.skip("nothing is built here, or there are no binutils to look at it with")
    entries = [entry for entry in json.loads(commands.read_text()) if CORE in entry.get("output", "")]
    entries = [entry for entry in entries if entry["output"].endswith(".o")]  # others are precompiled headers
    objects = [(Path(entry["file"]), BUILD / entry["output"]) for entry in entries]
    missing = [str(path) for source, path in objects if not path.exists() or not source.exists()]
    if not objects or missing:
        pytest.skip(f"the library is not built: {len(missing)} of {len(objects)} objects are missing")
    return [(folder_of(source), path) for source, path in objects]


@pytest.fixture(scope="module")
def symbols() -> tuple[Symbols, Symbols]:
    """What each folder defines for others, and what it leaves to them: mangled."""
    defined: Symbols = defaultdict(set)
    undefined: Symbols = defaultdict(set)
    for folder, path in built_objects():
        listing = subprocess.run(["nm", "-P", str(path)], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            name, kind = line.split(" ")[:2]
            if kind == "U":
                undefined[folder].add(name)
            elif kind in STRONG:
                defined[folder].add(name)
    return defined, undefined


def demangled(names: set[str]) -> set[str]:
    text = "\n".join(sorted(names))
    return set(subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout.splitlines())


def test_an_upward_use_is_found() -> None:
    may_use: dict[str, set[str]] = {"base": set(), "comm": {"base"}, "group": {"base", "comm"}}
    defined = {"base": {"error"}, "comm": {"send"}, "group": {"join"}}
    assert upward_uses(defined, {"group": {"send", "error", "puts"}, "comm": {"error"}}, may_use) == []
    assert upward_uses(defined, {"comm": {"join", "send"}}, may_use) == [("comm", "join", "group")]


def test_a_member_defined_above_its_header_is_found() -> None:
    classes = {"Group": {"comm"}, "Table": {"comm", "group"}}
    below = {"comm": {"waywiser::Group::send(waywiser::Elements, int)"}, "group": {"waywiser::Table::size() const"}}
    assert members_elsewhere(below, classes) == []
    above = {"group": {"waywiser::Group::Part<int>::all_reduce(waywiser::Group&)", "waywiser::sum(waywiser::Group&)"}}
    assert members_elsewhere(above, classes) == [
        "group defines waywiser::Group::Part<int>::all_reduce(waywiser::Group&), a member of a class of comm"
    ]


def test_functions_are_used_downwards(symbols: tuple[Symbols, Symbols]) -> None:
    defined, undefined = symbols
    wrong = upward_uses(defined, undefined, MAY_INCLUDE)
    names = [f"{folder} uses {' '.join(demangled({symbol}))} of {home}" for folder, symbol, home in wrong]
    assert names == []


def test_classes_have_their_members_in_the_folder_of_their_header(symbols: tuple[Symbols, Symbols]) -> None:
    defined, _ = symbols
    functions = {folder: {name for name in demangled(names) if "(" in name} for folder, names in defined.items()}
    assert members_elsewhere(functions, classes_in_headers()) == []
