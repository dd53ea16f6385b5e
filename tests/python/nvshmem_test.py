"""waywiser/nvshmem.h: what it has is what the page says; programs compile; what is out of scope does not, by name."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from consumers import nvcc
from rank_jobs import ROOT, finish, runtime_folder, start

from waywiser import _core

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.usefixtures("runtime_folder")
PAGE = ROOT / "docs/nvshmem.md"
SAMPLES = sorted((ROOT / "examples/nvshmem").glob("*.cu"))
TYPES = [
    "float",
    "double",
    "half",
    "bfloat16",
    "char",
    "schar",
    "short",
    "int",
    "long",
    "longlong",
    "uchar",
    "ushort",
    "uint",
    "ulong",
    "ulonglong",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "size",
    "ptrdiff",
]
FLAGS = shlex.split(os.environ.get("CUDAFLAGS", ""))  # as the build has them
PLACES = ("host", "kernel", "warp", "block", "stream")
DECLARED = re.compile(
    r"static inline\s*((?:__attribute__\(\(\w+\)\)\s*)*)[\w:* ]+?\b(nvshmemx?_\w+)\s*\(", re.ASCII
)  # after preprocessing
REFUSED = re.compile(r"void (nvshmemx?_\w+)\(Arguments&&\.\.\.\) = delete")


def headers() -> Path:
    """Of the CUDA runtime, beside nvcc."""
    beside = Path(nvcc()).resolve().parents[1]
    return next(each for each in (beside / "include", beside / "targets/x86_64-linux/include") if each.exists())


def said(*command: str | Path) -> tuple[int, str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=250)
    return done.returncode, done.stdout + done.stderr


def compiled(source: str, folder: Path, *options: str) -> tuple[int, str]:
    file = folder / "program.cu"
    file.write_text(source)
    return said(nvcc(), "-std=c++20", "-arch=sm_90", *FLAGS, f"-I{ROOT / 'src'}", *options, "-o", folder / "out", file)


def of_family(name: str) -> str:
    """TYPENAME and SIZE in place of a type and a number of bits."""
    first, *words = name.split("_")
    if words and words[0] in TYPES:
        words[0] = "TYPENAME"
    elif words:
        words[0] = re.sub(r"^(i?(?:put|get))(8|16|32|64|128)$", r"\1SIZE", words[0])
    return "_".join([first, *words])


def names_of_header() -> tuple[dict[str, str], set[str]]:
    """Name -> "host", "device" or "both"; what is refused."""
    code, text = said(nvcc(), "-std=c++20", "-E", "-x", "cu", f"-I{ROOT / 'src'}", ROOT / "src/waywiser/nvshmem.h")
    assert code == 0, text
    text = text.replace("__host__", "__attribute__((host))").replace("__device__", "__attribute__((device))")
    sides = {}
    for marks, name in DECLARED.findall(text):
        sides[name] = "device" if "host" not in marks and "device" in marks else "both" if "device" in marks else "host"
    return sides, set(REFUSED.findall(text))


def places(sides: dict[str, str]) -> dict[str, str]:
    """Each call and where it can be made: the host, a thread of a kernel, all of a warp or a block, a stream."""
    families: dict[str, str] = {}
    for name, side in sides.items():
        assert families.setdefault(of_family(name), side) == side, name
    found: dict[str, set[str]] = {}
    for name, side in families.items():
        scoped = re.fullmatch(r"nvshmemx_(\w+?)_(warp|block|on_stream)", name)
        if scoped is None:
            found.setdefault(name, set()).update(
                {"both": ("host", "kernel"), "device": ("kernel",)}.get(side, ("host",))
            )
        else:
            base = f"nvshmem_{scoped[1]}" if f"nvshmem_{scoped[1]}" in families else f"nvshmemx_{scoped[1]}"
            found.setdefault(base, set()).add(scoped[2].removeprefix("on_"))
    return {name: ", ".join(place for place in PLACES if place in at) for name, at in found.items()}


def names_of_page(title: str) -> dict[str, str]:
    """Of the tables below a heading: each name of the first column and what the second says."""
    section = PAGE.read_text().split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    found = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(r"`(nvshmemx?_\w+)`", cells[0]) if line.startswith("| `") else ():
            found[name] = cells[1] if len(cells) > 1 else ""
    return found


def test_the_page_lists_what_the_header_has() -> None:
    sides, refused = names_of_header()
    assert len(sides) > 2000
    assert names_of_page("Calls") == places(sides)
    assert set(names_of_page("What does not compile")) == {of_family(name) for name in refused}


def test_the_types_are_those_of_the_page() -> None:
    sides, _ = names_of_header()
    text = PAGE.read_text()
    for family, word in (("put", "all types"), ("atomic_add", "words"), ("atomic_xor", "bits")):
        types = [each for each in TYPES if f"nvshmem_{each}_{family}" in sides]
        line = next(line for line in text.splitlines() if line.startswith(f"- {word}:"))
        assert sorted(re.findall(r"`(\w+)`", line)) == sorted(types), word


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [pytest.param(one, marks=() if one.stem == "ring_shift" else pytest.mark.long, id=one.stem) for one in SAMPLES],
)
def test_programs_of_nvshmem_compile(source: Path, tmp_path: Path) -> None:
    """In parts that are linked for the device, as NVSHMEM's programs are; the build compiles each as a whole."""
    options = "-c", "-rdc=true", f"-I{source.parent}", "-Werror=all-warnings"
    assert compiled(source.read_text(), tmp_path, *options) == (0, "")


def run(program: str, ranks: int) -> Sequence[str]:
    built = ROOT / "build/examples" / program
    if not built.exists():
        pytest.skip("the build is without CUDA")
    code, lines, errors = finish(start("run", "-n", str(ranks), built))
    assert code == 0, errors
    return lines


@pytest.mark.parametrize("source", SAMPLES, ids=lambda path: path.stem)
def test_programs_of_nvshmem_run(source: Path) -> None:
    """Without a GPU they say so, after the PEs have found each other."""
    gpus = len(_core.discover().ids("gpu"))
    if gpus == 1:
        pytest.skip("kernels that wait for each other take turns on one GPU")
    lines = run(source.stem, 2)
    if gpus == 0:
        assert lines == [f"PE {pe} of 2: no GPU" for pe in range(2)]
    else:
        assert len([line for line in lines if re.search(r"^PE \d of 2: .*(right|as the serial program)$", line)]) == 2


CALLS = {
    "no init": ("nvshmem_my_pe();", 2, "nvshmem_my_pe: nvshmem_init has not been called"),
    "no memory": (
        "nvshmem_init(); nvshmem_free(&p);",
        2,
        "nvshmem_free: there is no symmetric memory yet: nvshmem_malloc",
    ),
    "no GPU": ("nvshmem_init(); nvshmem_malloc(8);", 1, "nvshmem: "),
    "size": ("nvshmem_init(); nvshmem_malloc(8);", 2, "nvshmem_init: "),
    "right": (
        "nvshmem_init(); nvshmem_init(); nvshmem_barrier_all(); "
        'std::printf("%d %d ", nvshmem_my_pe(), nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE)); '
        'std::printf("%d", nvshmem_ptr(&p, 0) == nullptr); '
        "nvshmem_finalize(); nvshmem_barrier_all(); nvshmem_finalize();",
        0,
        "",
    ),
    "exit": ("nvshmem_init(); nvshmem_global_exit(7);", 7, ""),
}


@pytest.mark.slow
def test_what_goes_wrong_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU, as far as programs come."""
    library = ROOT / "build/libwaywiser.so"
    if not library.exists():
        pytest.skip("the library is not built here")
    cases = "\n".join(f'if (name == "{name}") {{ {code} }}' for name, (code, _, _) in CALLS.items())
    source = f"""
#include <waywiser/nvshmem.h>
#include <cstdio>
#include <string>
int main(int, char** words) {{
  [[maybe_unused]] int p = 0;
  const std::string name = words[1];
  {cases}
}}"""
    file = tmp_path / "program.cpp"  # calls of the host alone: by the compiler for hosts, in a third of the time
    file.write_text(source)
    options = ["-std=c++20", f"-I{ROOT / 'src'}", f"-isystem{headers()}", f"-L{ROOT / 'build'}"]
    libraries = [f"-L{headers().parent / 'lib'}", "-lwaywiser", "-lcudart_static", f"-Wl,-rpath={ROOT / 'build'}",
                 "-lrt", "-lpthread", "-ldl"]  # fmt: skip
    assert said("c++", *options, "-o", tmp_path / "out", file, *libraries) == (0, "")
    for name, (_, wanted, words) in CALLS.items():
        if name == "no GPU" and _core.discover().ids("gpu"):
            continue
        if name == "size":
            monkeypatch.setenv("NVSHMEM_SYMMETRIC_SIZE", "much")
        done = subprocess.run([tmp_path / "out", name], capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr[: len(words)]) == (wanted, words), (name, done.stderr)
        assert done.stderr.count("\n") == (1 if words else 0), name
        assert name != "right" or done.stdout == "0 1 1"
        monkeypatch.delenv("NVSHMEM_SYMMETRIC_SIZE", raising=False)


USES = {
    "nvshmemx_mc_ptr": "nvshmemx_mc_ptr(0, p);",
    "nvshmemx_init_attr": "nvshmemx_init_attr(0, p);",
    "nvshmemx_float_iput_on_stream": "nvshmemx_float_iput_on_stream(p, p, 1, 1, 1, 0, 0);",
    "nvshmem_float_sum_reducescatter": "nvshmem_float_sum_reducescatter(0, p, p, 1);",
    "nvshmemx_buffer_register": "nvshmemx_buffer_register(p, 8);",
}


@pytest.mark.slow
def test_what_is_out_of_scope_does_not_compile_and_is_named(tmp_path: Path) -> None:
    lines = [f"void use_{i}(float* p) {{ {use} }}" for i, use in enumerate(USES.values())]
    kernels = [
        "__global__ void kernel(float* p) { nvshmem_half_sum_reducescatter(0, p, p, 1); }",
        "__global__ void wrong(float* p) { nvshmem_float_atomic_add(p, 1, 0); }",
    ]
    code, text = compiled("#include <waywiser/nvshmem.h>\n" + "\n".join([*lines, *kernels]), tmp_path, "-c")
    assert code != 0
    for name in (*USES, "nvshmem_half_sum_reducescatter"):
        assert re.search(rf'error: .*"{name}\(.*deleted function', text), name
    assert 'identifier "nvshmem_float_atomic_add" is undefined' in text


def test_c_plus_plus_has_the_calls_of_the_host(tmp_path: Path) -> None:
    source = tmp_path / "host.cpp"
    source.write_text(
        "#include <waywiser/nvshmem.h>\n"
        "int f(float* p, cudaStream_t s) {\n"
        "assert(p); nvshmemx_float_put_on_stream(p, p, 1, 0, s); nvshmem_barrier_all();\n"
        "return nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, p, p, 1, s); }\n"
    )
    options = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'src'}", f"-isystem{headers()}"]
    assert said("c++", *options, "-c", "-o", tmp_path / "host.o", source) == (0, "")
    source.write_text("#include <waywiser/nvshmem.h>\nvoid f(float* p) { nvshmemx_float_put_block(p, p, 1, 0); }\n")
    code, text = said("c++", *options, "-fsyntax-only", source)
    assert code != 0 and "nvshmemx_float_put_block" in text
