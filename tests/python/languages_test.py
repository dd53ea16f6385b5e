"""The exchange of examples/12_languages in C++, CuPy, Numba, Triton: it compiles; on two GPUs the bytes are equal."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_jobs import ROOT, example, finish, runtime_folder, start

from waywiser import _core

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.usefixtures("runtime_folder")
PACKAGES = {"cupy": ("cupy",), "numba": ("numba_cuda",), "triton": ("triton", "torch")}
CAPABILITIES = [(8, 0), (9, 0), (10, 0)]


def package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"there is no {name}")


def digest(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for each in data:
        value = (value ^ each) * 0x100000001B3 % 2**64
    return value


def of_neighbour(rank: int, size: int) -> str:
    numbers = 1000 * ((rank - 1) % size) + 0.5 * np.arange(1024)
    return f"rank {rank} of {size}: {digest(numbers.astype(np.float32).tobytes()):016x}"


def need_gpus() -> None:
    if len(_core.discover().ids("gpu")) < 2:
        pytest.skip("needs two GPUs")


@pytest.mark.parametrize("language", PACKAGES)
def test_kernels_of_python_exchange_the_same_bytes(language: str) -> None:
    for name in PACKAGES[language]:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"there is no {name}")
    need_gpus()
    code, lines, errors = example(2, "12_languages.py", language)
    assert (code, lines) == (0, [of_neighbour(rank, 2) for rank in range(2)]), errors


def test_the_kernel_of_c_plus_plus_exchanges_the_same_bytes() -> None:
    built = ROOT / "build/examples/12_languages_cuda"
    if not built.exists():
        pytest.skip("the build is without CUDA")
    gpus = len(_core.discover().ids("gpu"))
    if gpus == 1:
        pytest.skip("kernels that wait for each other take turns on one GPU")
    code, lines, errors = finish(start("run", "-n", "2", built))
    assert code == 0, errors
    none = [f"rank {rank} of 2: no GPU" for rank in range(2)]
    assert lines == ([of_neighbour(rank, 2) for rank in range(2)] if gpus else none)


@pytest.mark.slow
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_numba_links_the_device_functions(capability: tuple[int, int]) -> None:
    """To code of the GPU by the linker that Numba uses."""
    package("numba_cuda")
    linker = pytest.importorskip("cuda.bindings.nvjitlink")
    from numba import cuda, types

    from waywiser import numba as ranks

    def kernel(heap, team, out):  # type: ignore[no-untyped-def]
        after = (ranks.rank(heap) + 1) % ranks.size(heap)
        ranks.put_with_signal_block(heap, 8192, 64, 4096, 0, 1, ranks.ADD, after)
        ranks.wait_until_block(heap, 0, ranks.GE, 1, -1)
        if cuda.threadIdx.x == 0 and ranks.test(heap, 8, ranks.EQ, 0) == 1:
            out[0] = ranks.atomic_fetch_add(heap, 8, 2, after)
        ranks.barrier_block(heap, team)

    signature = types.void(types.uint64, types.uint64, types.uint64[:])
    ptx, _ = cuda.compile(kernel, signature, cc=capability, abi="numba", output="ptx", device=False)
    handle = linker.create(1, [f"-arch=sm_{capability[0]}{capability[1]}"])
    for name, code in (("kernel", ptx.encode()), ("waywiser", ranks.linked_code(capability).data)):
        linker.add_data(handle, linker.InputType.PTX, code, len(code), name)
    linker.complete(handle)
    assert linker.get_linked_cubin_size(handle) > 1000
    linker.destroy(handle)


@pytest.mark.slow
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_triton_compiles_the_exchange(capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A put comes before the barrier of the block and the signal, what follows a wait after it."""
    package("triton")
    from triton import compile as compile_kernel
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from exchange_triton import exchange

    numbers = {"count": 1024, "signal": 0, "given": 64, "taken": 8192}
    signature = {"table": "i64"} | dict.fromkeys(numbers, "constexpr")
    target = GPUTarget("cuda", 10 * capability[0] + capability[1], 32)
    made = compile_kernel(ASTSource(fn=exchange, signature=signature, constexprs=numbers), target=target)
    assert len(made.asm["cubin"]) > 1000
    order = ["st.global", "bar.sync", "red.release.sys", "ld.acquire.sys", "bar.sync", "fence.sc.sys", "bar.sync"]
    order += ["st.release.sys", "ld.acquire.sys", "bar.sync"]
    at = 0
    for instruction in order:
        at = made.asm["ptx"].find(instruction, at)
        assert at >= 0, instruction
        at += len(instruction)


def test_the_table_of_triton_has_the_places_of_the_core() -> None:
    """What waywiser/triton.py reads by number is what python/bindings/heap.cpp writes there."""
    text = Path(ROOT, "python/bindings/heap.cpp").read_text()
    words = text[text.index("nb::list words_of") : text.index("return words;")]
    order = ["heap.rank)", "heap.size)", "deadline_ns", "heap.notice", "heap.bytes", "team.rank)", "team.size)"]
    order += ["heap.ranks[heap.rank]", "arrivals)", "{most}", ": heap.ranks)", ": team.members)", "heap.counters"]
    places = [words.index(each) for each in order]
    assert places == sorted(places)
    module = Path(ROOT, "python/waywiser/triton.py").read_text()
    numbers = {"RANK": 0, "SIZE": 1, "TEAM_RANK": 5, "TEAM_SIZE": 6, "OWN": 7, "ARRIVALS": 8, "MOST": 9, "MEMORY": 10}
    for name, place in numbers.items():
        assert f"\n{name} = tl.constexpr({place})" in module
    assert "[$1+16]" in module and "[$1+24]" in module  # deadline and notice
