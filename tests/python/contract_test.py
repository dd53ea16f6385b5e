"""What the package promises to Python programs: names, types, words about errors, and one line for a wrong argument."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest
from rank_jobs import ROOT, finish, runtime_folder, start

import waywiser as ww

__all__ = ["runtime_folder"]
PROGRAM = ROOT / "tests/consumers/python/typed_program.py"
CLASSES = (ww.Future, ww.GpuArray, ww.GpuStream, ww.Gpus, ww.Group, ww.Prepared, ww.Window)
FUNCTIONS = (ww.cuda_gpus, ww.find_gpus, ww.from_mpi4py, ww.from_torch, ww.join, ww.virtual_gpus)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, also those that it has from ours below it."""
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if name == "__call__" or not name.startswith("_"):
            yield name, member


def words(documented: Any) -> str:
    return " ".join((inspect.getdoc(documented) or "").split())


# Name -> docstring.
CALLABLES = {function.__name__: words(function) for function in FUNCTIONS} | {
    f"{kind.__name__}.{name}": words(member) for kind in CLASSES for name, member in members(kind)
}


def named_errors(text: str) -> list[str]:
    return re.findall(r"\b[A-Z]\w*(?:Error|Interrupt)\b", text)


@pytest.mark.parametrize("name", CALLABLES)
def test_every_docstring_says_what_is_raised(name: str) -> None:
    raises = re.search(r"raises (.*)", CALLABLES[name], re.IGNORECASE)
    assert raises is not None, CALLABLES[name]
    as_another = re.match(r"as (every call|\w+)", raises[1])
    assert named_errors(raises[1]) or raises[1].startswith("nothing") or as_another, CALLABLES[name]
    if as_another and as_another[1] != "every call":
        assert as_another[1] in {each.rpartition(".")[2] for each in CALLABLES}


@pytest.mark.parametrize("text", [*CALLABLES.values(), words(ww.Group)])
def test_the_errors_that_docstrings_name_are_there(text: str) -> None:
    for error in named_errors(text):
        assert hasattr(ww, error) or hasattr(builtins, error), error


def test_the_words_for_operations_are_those_of_the_core() -> None:
    with ww.join() as group:
        for op in get_args(ww.ReduceOp):
            assert group.all_reduce(np.ones(3), op=op).tolist() == [1, 1, 1]
        with pytest.raises(ww.InputError) as caught:
            group.all_reduce(np.ones(3), op="xor")  # type: ignore[call-overload]
    assert str(caught.value).endswith(f"there are {', '.join(get_args(ww.ReduceOp))}")


def test_the_typed_program_uses_every_public_name() -> None:
    tree = ast.parse(PROGRAM.read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    methods = {name for kind in CLASSES for name, _ in members(kind) if name != "__call__"}
    assert methods | set(ww.__all__) <= used, (methods | set(ww.__all__)) - used


def test_the_types_of_the_typed_program_are_right() -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: make lint checks it")
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_typed_program_runs() -> None:
    code, lines, errors = finish(start("run", "-n", "2", sys.executable, PROGRAM))
    assert (code, errors) == (0, "")
    assert [line.partition(",")[0] for line in lines] == ["rank 0: every call", "rank 1: every call"]
