"""Which C++ files clang-tidy reads: all, or those that differ from the last full run that passed."""

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests/long_results.md"
OURS = ("src/", "plugins/", "python/bindings/")
APART = ("src/waywiser/sim/", "src/waywiser/bench/", "python/bindings/")  # left out where nothing is known
FOLDERS = (Path("/"), ROOT / "src", ROOT / "python", ROOT)  # an include is below one of them; a unit names whole paths
SETTINGS = (".clang-tidy", "CMakeLists.txt", "cmake/Targets.cmake", "scripts/provision/tidy_scope.py")
TOOLS = "^lint = "  # the line of pyproject.toml with the version of clang-tidy


@cache
def _included(file):
    names = re.findall(r'^#include "([^"]+)"', file.read_text(errors="replace"), re.MULTILINE)
    return [folder / name for name in names for folder in (*FOLDERS, file.parent) if (folder / name).is_file()]


def with_headers(file, seen=None):
    """`file` and every header of ours that it includes, directly or not, in order."""
    seen = {} if seen is None else seen
    if file not in seen:
        seen[file] = None
        for one in _included(file):
            with_headers(one, seen)
    return seen


def files_of(entry):
    """Our C++ files, from the root on, of a source in compile_commands.json: itself, or those of a unit."""
    source = Path(entry["file"])
    files = [source]
    if source.suffix == ".cxx":
        files = re.findall(r'^#include "(/[^"]+)"', source.read_text(), re.MULTILINE)
    names = [os.path.relpath(file, ROOT) for file in files if Path(file).suffix == ".cpp"]
    return [name for name in names if name.startswith(OURS)]


def _git(*words):
    """The lines of an answer of git; None: it has failed."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else None


def changed_files():
    """(The files that differ from those of the last full run that passed, its commit), or (None, why all are read)."""
    row = re.search(r"^\| tidy \|[^|]*\| passed \|[^|]*\| (\w+) \|$", RESULTS.read_text(), re.MULTILINE)
    if row is None:
        return None, f"{RESULTS.relative_to(ROOT)} tells of no full run that passed"
    changed = _git("diff", "--name-only", "--no-renames", row[1], "--")
    new = _git("ls-files", "--others", "--exclude-standard")
    tools = _git("diff", "--name-only", f"-G{TOOLS}", row[1], "--", "pyproject.toml")
    if changed is None or new is None or tools is None:
        return None, f"the last full run was at {row[1]}, which is not in the history here"
    if other := [*tools, *(name for name in changed if name in SETTINGS)]:
        return None, f"{other[0]} has changed since the last full run"
    return {*changed, *new}, row[1]


def choose(files, changed):
    """Of `files`: those that have changed, and for each changed header the first that includes it."""
    read = {name: {os.path.relpath(one, ROOT) for one in with_headers(ROOT / name)} for name in files}
    chosen = [name for name in files if name in changed]
    headers = {name for name in changed if name.startswith(OURS) and not name.endswith(".cpp")}
    headers -= {header for name in chosen for header in read[name]}
    for name in sorted(files, key=lambda one: len(read[one])):
        if found := headers & read[name]:
            chosen.append(name)
            headers -= found
    return chosen


def short(entries, folder):
    """(What to read of compile_commands.json, where its commands are, that in words). Writes units of what has
    changed, and their commands, into `folder`."""
    everything = [name for entry in entries for name in files_of(entry)]
    changed, told = changed_files()
    if changed is None:
        core = [one for one in entries if not all(name.startswith(APART) for name in files_of(one))]
        count = sum(not name.startswith(APART) for name in everything)
        words = f"{count} of {len(everything)} files, all but simulator, bench and bindings: {told}"
        return core, folder.parent, words
    chosen = set(choose(everything, changed))
    folder.mkdir(exist_ok=True)
    parts = []
    for number, entry in enumerate(entries):
        names = [name for name in files_of(entry) if name in chosen]
        if not names:
            continue
        unit = folder / f"unit_{number}.cxx"
        unit.write_text(
            "".join(f'// NOLINTNEXTLINE(bugprone-suspicious-include)\n#include "{ROOT / name}"\n' for name in names)
        )
        parts.append({**entry, "file": str(unit), "command": entry["command"].replace(entry["file"], str(unit))})
    (folder / "compile_commands.json").write_text(json.dumps(parts))
    words = (
        f"{len(chosen)} of {len(everything)} files: what has changed since {told}, and a file for each changed header"
    )
    return parts, folder, words
