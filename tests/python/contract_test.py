"""The contract of the Python package: names, types, documented errors, and one line for a wrong argument."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from rank_jobs import ROOT, finish, runtime_folder, start

import waywiser as ww
from waywiser import table

__all__ = ["runtime_folder"]
PROGRAM = ROOT / "tests/consumers/python/typed_program.py"
CLASSES = (
    ww.CudaKernel, ww.Future, ww.GpuArray, ww.GpuStream, ww.Gpus, ww.GridPartition, ww.Group, ww.HaloExchange,
    ww.Heap, ww.HeapTeam, ww.MeshPartition, ww.Prepared, ww.RemoteArray, ww.RemoteEvent, ww.RemoteGpu,
    ww.RemoteStream, ww.Window, table.Shuffle,
)  # fmt: skip
FUNCTIONS = (
    ww.cuda_gpus, ww.find_gpus, ww.from_mpi4py, ww.from_torch, ww.halo.finalize, ww.halo.init_grid,
    ww.halo.update_halo, ww.include_path, ww.join, ww.nvrtc_options, ww.remote, ww.virtual_gpus, table.group_by,
    table.merge, table.partition, table.shuffle, table.sort,
)  # fmt: skip


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, including those of our base classes."""
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
            assert group.all_reduce(np.ones(3, int), op=op).tolist() == [1, 1, 1]
        with pytest.raises(ww.InputError) as caught:
            group.all_reduce(np.ones(3), op="xor")  # type: ignore[call-overload]
    assert str(caught.value).endswith(f"there are {', '.join(get_args(ww.ReduceOp))}")


def test_the_names_of_types_are_those_of_the_core() -> None:
    source = (ROOT / "src/waywiser/comm/data_type.cpp").read_text()
    table = re.search(r"type_names\{(.*?)\}", source, re.DOTALL)
    assert table is not None
    assert {*re.findall(r'"(\w+)"', table[1]), "bool"} == set(get_args(ww.ElementName))


def test_every_name_of_a_type_is_one_to_send() -> None:
    pytest.importorskip("ml_dtypes")  # without it NumPy has no bfloat16 and no float8
    with ww.join(gpus=GPUS) as group:
        for name in get_args(ww.ElementName):
            array = GPUS.empty(3, name)
            array.fill(1)
            assert group.all_gather(array).numpy().astype(complex).tolist() == [[1, 1, 1]], name


def test_the_typed_program_uses_every_public_name() -> None:
    trees = [ast.parse(program.read_text()) for program in PROGRAM.parent.glob("*.py")]
    used = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    methods = {name for kind in CLASSES for name, _ in members(kind) if name != "__call__"}
    wanted = methods | set(ww.__all__) | set(table.__all__)
    assert wanted <= used, wanted - used


@pytest.mark.slow
def test_the_types_of_the_typed_program_are_right() -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: make lint checks it")
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *PROGRAM.parent.glob("*.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_a_wrong_name_of_a_type_is_refused_before_the_program_runs(tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: make lint checks it")
    program = tmp_path / "wrong.py"
    program.write_text(
        "import waywiser as ww\n"
        "ww.virtual_gpus(1).empty(3, 'float32')\n"
        "ww.virtual_gpus(1).empty(3, 'float46')\n"
    )  # fmt: skip
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", program]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    refused = [line for line in answer.stdout.splitlines() if "error:" in line]
    assert len(refused) == 1 and "wrong.py:3" in refused[0] and "[arg-type]" in refused[0], answer.stdout


def test_the_typed_program_runs() -> None:
    code, lines, errors = finish(start("run", "-n", "2", sys.executable, PROGRAM))
    assert (code, errors) == (0, "")
    assert [line.partition(",")[0] for line in lines] == ["rank 0: every call", "rank 1: every call"]


X = np.ones(3)
GPUS = ww.virtual_gpus(1)


@pytest.mark.parametrize(
    ("call", "kind", "line"),
    [
        (lambda g, _: g.send(X, 0, 1 << 40), ww.InputError, "tag is out of range: 1099511627776"),
        (lambda g, _: g.send(X, 0, 40_000), ww.InputError, "tag 40000 is not in 0 to 32767"),
        (lambda g, _: g.send(X, "0"), ww.InputTypeError, "to is a whole number, not '0' of type str"),
        (lambda g, _: g.start_recv(X, 0.0), ww.InputTypeError, "source is a whole number, not 0.0 of type float"),
        (
            lambda g, _: g.sendrecv(X, 0, None, 0),
            ww.InputError,
            "an array was expected, 'NoneType' is no array: give it",
        ),
        (lambda g, _: g.broadcast(None), ww.InputError, "an array was expected, 'NoneType' is no array: give it"),
        (lambda g, _: g.broadcast(X, 1.5), ww.InputTypeError, "root is a whole number, not 1.5 of type float"),
        (lambda g, _: g.broadcast(X, None), ww.InputTypeError, "root is a whole number, not None of type NoneType"),
        (lambda g, _: g.all_reduce(None), ww.InputTypeError, "give out= as well: for a NoneType it is not made"),
        (lambda g, _: g.all_reduce(X, op=3), ww.InputTypeError, "op is a string, not 3 of type int"),
        (lambda g, _: g.start_reduce(X, op=None), ww.InputTypeError, "op is a string, not None of type NoneType"),
        (lambda g, _: g.start_gather(X, root=-(1 << 40)), ww.InputError, "root is out of range: -1099511627776"),
        (lambda g, _: g.all_gather(X, counts=[1.5]), ww.InputTypeError, "counts= are whole numbers, one of each rank"),
        (
            lambda g, _: g.all_gather(X, counts=[-3]),
            ww.InputError,
            "counts= has -3: a number of elements is not below 0",
        ),
        (lambda g, _: g.gather(X, counts=3), ww.InputTypeError, "counts= are whole numbers, one of each rank"),
        (lambda g, _: g.all_to_all_v(X, None, X, [3]), ww.InputTypeError, "give= are whole numbers, one of each rank"),
        (lambda g, _: g.neighbor_exchange([3]), ww.InputTypeError, "neighbors is a list of Exchange"),
        (lambda g, _: g.neighbor_exchange([(0, X, X, 1 << 40)]), ww.InputError, "give_tag is out of range: 10995116"),
        (lambda g, _: g.prepare_exchange([(0.5, X, X)]), ww.InputTypeError, "rank is a whole number, not 0.5 of type"),
        (lambda g, _: g.prepare(GPUS.array(X), 1 << 70), ww.InputError, "largest is out of range: 11805916207174113"),
        (lambda g, _: g.split("a"), ww.InputTypeError, "color is a whole number, not 'a' of type str"),
        (lambda g, _: g.encrypted_by(None), ww.InputTypeError, "rank is a whole number, not None of type NoneType"),
        (lambda g, _: setattr(g, "timeout", "1"), ww.InputTypeError, "timeout is a number, not '1' of type str"),
        (lambda g, w: g.put(X, w, 0, -8), ww.InputError, "offset is out of range: -8"),
        (lambda g, w: g.put(X, None, 0), ww.InputTypeError, "window is what expose() returns, not NoneType"),
        (lambda g, w: g.get(X, w, [0]), ww.InputTypeError, "source is a whole number, not [0] of type list"),
        (lambda g, w: g.signal(w, 0, 0, -1), ww.InputError, "value is out of range: -1"),
        (lambda g, w: g.wait(w, 0, 1 << 64), ww.InputError, "at_least is out of range: 18446744073709551616"),
        (lambda g, w: w.bytes_of("0"), ww.InputTypeError, "rank is a whole number, not '0' of type str"),
        (lambda *_: GPUS.empty(3, gpu=0.5), ww.InputTypeError, "gpu is a whole number, not 0.5 of type float"),
        (lambda *_: ww.virtual_gpus(1.5), ww.InputTypeError, "count is a whole number, not 1.5 of type float"),
        (lambda *_: ww.join("60"), ww.InputTypeError, "timeout is a number, not '60' of type str"),
        (lambda *_: ww.join(encrypt="yes"), ww.InputTypeError, "encrypt is True or False, not 'yes' of type str"),
        (lambda *_: ww.join(gpus=1), ww.InputTypeError, "gpus is cuda_gpus() or virtual_gpus(), not int"),
        (lambda *_: ww.join(on_failure="x"), ww.InputError, "on_failure is 'trap', 'raise' or 'abort', not 'x'"),
    ],
)
def test_a_wrong_argument_is_one_line(call: Callable[[Any, Any], Any], kind: type[ww.Error], line: str) -> None:
    with ww.join(gpus=GPUS) as group:
        window = group.expose(np.zeros(4))
        with pytest.raises(ww.Error) as caught:
            call(group, window)
        assert type(caught.value) is kind
        assert str(caught.value).startswith(line) and "\n" not in str(caught.value)
        assert group.all_reduce(X).tolist() == [1, 1, 1]  # it has done no harm


def test_whole_numbers_of_other_libraries_are_taken() -> None:
    with ww.join() as group:
        assert group.broadcast(X, np.int64(0)) is X
        assert group.all_gather(X, counts=np.array([3])).tolist() == [1, 1, 1]
