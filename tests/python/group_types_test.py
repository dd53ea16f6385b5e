"""Every type of element in the calls of a group, compared with NumPy's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_rank import alone, gpus
from rank_jobs import NO_PLAN, run, runtime_folder

import waywiser as ww

__all__ = ["alone", "gpus", "runtime_folder"]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = ("float64", "float32", "float16", *INTEGERS, "complex64", "complex128")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


def test_reductions_are_those_of_numpy() -> None:
    """Of two ranks, so that nothing depends on an order; the bits are the same in host memory and on a GPU."""
    code = f"""
    gpus = ww.virtual_gpus(2)
    group = ww.join(gpus=gpus)
    random = np.random.default_rng(7)
    def product(a, b):  # NumPy rounds that of complex numbers otherwise on some processors
        if a.dtype.kind != "c": return a * b
        both = np.empty_like(a)
        both.real = a.real * b.real - a.imag * b.imag
        both.imag = a.real * b.imag + a.imag * b.real
        return both
    folds = dict(sum=np.add, prod=product, min=np.minimum, max=np.maximum)
    for name in {NUMBERS!r}:
        kind = np.dtype(name)
        bits = random.integers(0, 256, (2, 61 * kind.itemsize), np.uint8)
        whole = kind.kind in "iu"
        values = bits.view(kind) if whole else random.normal(0, 9, (2, 61)).astype(kind)
        if kind.kind == "c": values = values + random.normal(0, 9, (2, 61)).astype(kind) * kind.type(1j)
        for op, fold in folds.items():
            if kind.kind == "c" and op in ("min", "max"): continue
            wanted = fold(*values)
            assert group.all_reduce(values[group.rank].copy(), op=op).tobytes() == wanted.tobytes(), (name, op)
            on_gpu = group.all_reduce(gpus.array(values[group.rank], group.rank), op=op)
            assert on_gpu.dtype == kind and on_gpu.numpy().tobytes() == wanted.tobytes(), (name, op)
        small = np.full(5, 2 * group.rank + 1, kind)
        assert group.all_reduce(small, op="avg").tolist() == [2] * 5, name
        assert group.reduce_scatter(np.ones(4, kind)).tolist() == [2, 2], name
    """
    code, lines, errors = run(2, code, program="import numpy as np, waywiser as ww\n")
    assert (code, lines) == (0, []) and errors in ("", NO_PLAN), errors


def test_float8_is_that_of_ml_dtypes() -> None:
    """All pairs of numbers. The sign of a NaN, and which zero of two is least, is ours to say."""
    pytest.importorskip("ml_dtypes")
    code = f"""
    gpus = ww.virtual_gpus(2)
    group = ww.join(gpus=gpus)
    every = np.arange(256, dtype=np.uint8)
    pairs = [np.repeat(every, 256), np.tile(every, 256)]
    folds = dict(sum=np.add, prod=np.multiply, min=np.minimum, max=np.maximum)
    for name in {FLOAT8!r}:
        kind = np.dtype(getattr(ml_dtypes, name))
        a, b = (each.view(kind) for each in pairs)
        mine = pairs[group.rank].view(kind)
        for op, fold in folds.items():
            with np.errstate(all="ignore"): wanted = fold(a.astype(np.float32), b.astype(np.float32)).astype(kind)
            here = group.all_reduce(mine.copy(), op=op)
            there = group.all_reduce(gpus.array(mine, group.rank), op=op).numpy()
            assert here.dtype == kind and there.dtype == kind
            same = here.view(np.uint8) == there.view(np.uint8)
            assert same.all(), (name, op, pairs[0][~same][:9], pairs[1][~same][:9], here[~same][:9], there[~same][:9])
            nan = np.isnan(wanted.astype(np.float32))
            assert (here.view(np.uint8)[nan] & 0x7f == 0x7f).all(), (name, op)
            assert (here[~nan].astype(np.float32) == wanted[~nan].astype(np.float32)).all(), (name, op)
    """
    code, lines, errors = run(2, code, program="import ml_dtypes, numpy as np, waywiser as ww\n")
    assert (code, lines) == (0, []) and errors in ("", NO_PLAN), errors


def test_complex_numbers_have_no_order(alone: ww.Group, gpus: ww.Gpus) -> None:
    for kind in ("complex64", "complex128"):
        values = np.ones(4, kind)
        for op in ("min", "max"):
            words = f": there is no {op} of {kind}, which has no order"
            for call in (alone.all_reduce, alone.reduce, alone.reduce_scatter, alone.start_all_reduce):
                for data in (values, gpus.array(values)):
                    with pytest.raises(ww.InputError) as caught:
                        call(data, op=op)
                    assert str(caught.value).endswith(words) and "\n" not in str(caught.value)


def test_arrays_of_gpus_say_their_type(alone: ww.Group, gpus: ww.Gpus) -> None:
    for name in NUMBERS:
        array = gpus.array(np.arange(6).astype(name).reshape(2, 3))
        assert array.__cuda_array_interface__["typestr"] == np.dtype(name).str
        assert alone.all_gather(array).dtype == np.dtype(name)


@pytest.mark.parametrize("name", [*FLOAT8, "bfloat16"])
def test_types_of_ml_dtypes(alone: ww.Group, gpus: ww.Gpus, name: str) -> None:
    kind = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))
    values = np.arange(6).astype(kind).reshape(2, 3)
    assert alone.all_reduce(values).tolist() == values.tolist()
    assert alone.all_reduce(gpus.array(values)).numpy().tolist() == values.tolist()
    with pytest.raises(ww.InputError, match="not contiguous"):
        alone.all_reduce(values.T)
    single = gpus.array(kind.type(3))
    assert (single.shape, float(single.numpy())) == ((), 3.0)
    read_only = values.copy()
    read_only.flags.writeable = False
    with pytest.raises(ww.InputError, match="cannot be written to"):
        alone.broadcast(read_only)


OTHER_TYPES = ("datetime64[s]", "i4,f8", "S3", "U2", "longdouble", "bool")


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_windows_take_elements_of_any_type(alone: ww.Group, gpus: ww.Gpus, name: str) -> None:
    kind = np.dtype(name)
    values = np.frombuffer(bytes(range(4 * kind.itemsize)), np.uint8).copy().view(kind)
    exposed = np.zeros(6, kind)
    window = alone.expose(exposed)
    assert window.bytes_of(0) == 6 * kind.itemsize
    alone.put(values, window, 0, kind.itemsize)
    alone.flush()
    assert exposed[1:5].tobytes() == values.tobytes()
    back = np.zeros(4, kind)
    assert alone.get(back, window, 0, kind.itemsize) is back
    assert back.tobytes() == values.tobytes()
    if name not in ("bool",):
        with pytest.raises(ww.InputError, match=r"of a type that cannot be sent|an array was expected"):
            alone.all_reduce(values)
    on_gpu = gpus.array(values)
    window = alone.expose(gpus.empty(4, kind))
    alone.put(on_gpu, window, 0)
    alone.flush()
    assert window.array.numpy().tobytes() == values.tobytes()


def test_windows_refuse_what_is_no_memory(alone: ww.Group) -> None:
    for bad, words in (
        (np.zeros(3, object), "an array was expected"),
        (np.zeros((4, 4), "datetime64[s]").T, "not contiguous"),
        ("text", "an array was expected"),
    ):
        with pytest.raises(ww.InputError, match=words) as caught:
            alone.expose(bad)
        assert "\n" not in str(caught.value)


def test_arrays_of_gpus_are_refused_in_our_words(gpus: ww.Gpus) -> None:
    array = gpus.array(np.zeros((2, 3)))
    calls: list[tuple[Any, str]] = [
        (lambda: gpus.empty(3, "nonsense"), "dtype is what numpy.dtype takes, not 'nonsense'"),
        (lambda: gpus.empty(3, {"no": 1}), "dtype is what numpy.dtype takes, not {'no': 1}"),
        (lambda: gpus.empty(3, object), "dtype is a type of numbers: a GPU has no Python objects"),
        (lambda: gpus.array([object()]), "dtype is a type of numbers: a GPU has no Python objects"),
        (lambda: gpus.array([[1], [2, 3]]), "values that are no array of numbers: "),
        (lambda: array.fill("text"), "values that are no array of float64: "),
        (lambda: array.fill(np.zeros(4)), "values of shape (4,) cannot fill an array of shape (2, 3)"),
        (lambda: gpus.empty(2, "datetime64[s]").__dlpack__(), "DLPack has no type for datetime64[s]"),
    ]
    for call, words in calls:
        with pytest.raises(ww.InputError) as caught:
            call()
        assert str(caught.value).startswith(words) and "\n" not in str(caught.value)
