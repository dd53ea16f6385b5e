"""Every command line in the docs, in the READMEs and in the help works if it is pasted into a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from waywiser import cli
from waywiser.cli.doors import DOORS
from waywiser.cli.program import build_app

ROOT = Path(__file__).parents[2]
DOCS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / ".github").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# Characters that a shell interprets, such as a pipe between commands: in an argument they must be in quotes.
SPECIAL = re.compile(r"[<>*?;&()`$\[\]{}]")
LAUNCHERS = {"mpirun", "srun", "torchrun", "make", "sbatch", "$", "waywiser"}


def blocks(text: str) -> Iterator[str]:
    """Lines inside ``` fences, and lines of blocks that are indented by four spaces after an empty line."""
    fenced, indented, before = False, False, ""
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
            continue
        indented = line.startswith("    ") and (indented or not before.strip())
        before = line
        if fenced or indented:
            yield line.strip()


def commands_in(text: str) -> Iterator[str]:
    """The lines that start `waywiser`, themselves or by a launcher."""
    for line in blocks(text):
        line = line.removeprefix("$ ")
        if line.split(" ", 1)[0] in LAUNCHERS and re.search(r"(^| )waywiser( |$)", line):
            yield line


def command_of(verb: str) -> Any:
    """As the command line builds it. The module of the verb `run` must not take the place of `cli.run`."""
    run = cli.run
    try:
        group = typer.main.get_command(build_app([verb]))
    finally:
        cli.run = run
    return group.commands[verb]  # type: ignore[attr-defined]


def documented() -> list[tuple[str, str]]:
    found = [(path.name, line) for path in DOCS for line in commands_in(path.read_text(encoding="utf-8"))]
    found += [("waywiser", line) for line in re.findall(r" (waywiser [a-z].*)", re.sub(r"\\\n +", "", DOORS))]
    for verb in cli.VERBS:
        lines = re.findall(r"`(waywiser [^`]+)`", command_of(verb).help or "")
        found += [(f"{verb} --help", line) for line in lines]
    return found


COMMANDS = documented()


def words_of(line: str) -> list[str]:
    """The words of a line, split like a shell, but with their quotes; without comments and text after a pipe."""
    lexer = shlex.shlex(line, posix=False, punctuation_chars="|")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words = list(lexer)
    return words[: words.index("|")] if "|" in words else words


def test_there_are_some() -> None:
    assert len(COMMANDS) > 40
    assert {"bench.md", "topology.md", "README.md", "explain --help", "waywiser"} <= {where for where, _ in COMMANDS}


@pytest.mark.parametrize(("where", "line"), COMMANDS, ids=lambda value: value[:60])
def test_no_special_character_hides_in_an_argument(where: str, line: str) -> None:
    hidden = [word for word in words_of(line) if word[0] not in "'\"" and SPECIAL.search(word)]
    assert not hidden, f"{where}: a shell takes {hidden[0]} for something else"


@pytest.mark.parametrize(("where", "line"), COMMANDS, ids=lambda value: value[:60])
def test_the_command_line_is_one(where: str, line: str) -> None:
    words = [shlex.split(word)[0] if word[0] in "'\"" else word for word in words_of(line)]
    own = words[words.index("waywiser") + 1 :]
    verb = next(word for word in own if not word.startswith("-"))
    assert verb in cli.VERBS, f"{where}: {verb}"
    command_of(verb).make_context(verb, own[own.index(verb) + 1 :])  # raises for an option that is not there


@pytest.mark.parametrize("memory", ["gpu-to-host", "gpu>host", "host-to-gpu,gpu>exposed"])
def test_two_memories_without_a_special_character(memory: str) -> None:
    from waywiser.cli.bench import _places

    assert _places(memory) == [word.replace("-to-", ">") for word in memory.split(",")]


def test_two_places_without_a_special_character(capsys: pytest.CaptureFixture[str]) -> None:
    told = ["simulate", "latency", "--machine", "hse-a", "--sizes", "8"]
    answers = []
    for pair in ("gpu0-to-gpu1", "gpu0>gpu1"):
        assert cli.run([*told, "--pair", pair]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1] and "gpu0>gpu1" in answers[0]
