"""Programs outside of this repository, built with the files that `cmake --install` installs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from consumers import (
    BUILD,
    BUILDS_OF_OTHERS,
    HERE,
    NO_GFORTRAN,
    SONAME,
    SUMS,
    build,
    done,
    in_c,
    library_folder,
    listed_headers,
    nvcc,
    prefix,
    public_headers,
    run,
    tool,
)
from rank_jobs import ROOT, finish, runtime_folder, start
from remote_gpu import Server

import waywiser

__all__ = ["in_c", "prefix", "runtime_folder"]
pytestmark = pytest.mark.slow
MOST_HEADERS = 11
REDUCTIONS = """
#include "waywiser/kernels/block/cuda_block.cuh"
using waywiser::block::CudaBlock;
template <typename T>
__global__ void extremes(T* x) {
  x[2] = CudaBlock::least(x[0], x[1]);
  x[3] = CudaBlock::greatest(x[0], x[1]);
}
template __global__ void extremes(float*);
template __global__ void extremes(double*);
template __global__ void extremes(int*);
"""
# Exactly, of those with the protocols of heaps: one, and every one.
OF_PROTOCOLS = {"waywiser/heap/device/packets.hpp": 12, "waywiser/heap/device/messages.hpp": 16}


def test_cpp(prefix: Path, tmp_path: Path) -> None:
    assert run(build("cpp", prefix, tmp_path)) == SUMS


def test_the_cpp_program_is_short() -> None:
    text = (HERE / "cpp/main.cpp").read_text()
    assert len([line for line in text.splitlines() if line]) <= 12
    assert f"```cpp\n{text}```" in (ROOT / "docs/programs.md").read_text()


def test_one_sided(prefix: Path, tmp_path: Path) -> None:
    """docs/one-sided.md, "Without a GPU": its whole program, on virtual GPUs."""
    example = shutil.copy(ROOT / "examples/11_one_sided.cpp", tmp_path)
    lines = run(build("one_sided", prefix, tmp_path, f"-DEXAMPLE={example}"), 3)
    assert lines == [f"rank {rank} of 3: 200 steps in one kernel, as the serial program" for rank in range(3)]


def test_c(in_c: Path) -> None:
    for ranks in (1, 2, 3):
        assert run(in_c, ranks) == [f"rank {rank} of {ranks}: all calls" for rank in range(ranks)]
    code, out, said = finish(start("run", "-n", "3", in_c, "one gives up"))
    assert (code, out) == (0, [])
    # UCX may still be connecting to the rank that has gone, and then says so itself.
    assert [line for line in said.splitlines() if not line.startswith("ucx: ")] == []


def test_c_grid_and_tables(in_c: Path) -> None:
    for name, said in (("grid", "ghosts are right"), ("tables", "all rows")):
        for ranks in (1, 2, 5):
            lines = run(in_c.with_name(name), ranks)
            assert lines == [f"rank {rank} of {ranks}: {said}" for rank in range(ranks)]


def test_c_remote(in_c: Path, tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert done(in_c.with_name("remote"), server.address, server.key) == "all calls\n"
    assert server.close()[0] == 0


def test_the_c_programs_call_every_function() -> None:
    program = "".join((HERE / f"c/{name}.c").read_text() for name in ("main", "grid", "tables", "remote"))
    functions = re.findall(r"WW_API [^;]*?(ww_\w+)\(", (ROOT / "src/waywiser/c/waywiser.h").read_text())
    assert len(functions) > 50
    assert [name for name in functions if f"{name}(" not in program] == []


def test_fortran(prefix: Path, tmp_path: Path) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip(NO_GFORTRAN)
    version = waywiser.__version__
    assert run(build("fortran", prefix, tmp_path)) == [f"rank {rank} of 2: {version}" for rank in range(2)]


def test_cuda(prefix: Path, tmp_path: Path) -> None:
    compiler = Path(nvcc())
    options = [f"-DCMAKE_CUDA_COMPILER={compiler}", "-DCMAKE_CUDA_ARCHITECTURES=90",
               f"-DCMAKE_CUDA_FLAGS=-L{compiler.resolve().parents[1]}/lib"]  # fmt: skip
    lines = run(build("cuda", prefix, tmp_path, *options))
    assert lines in (SUMS, [f"rank {rank} of 2: no GPU" for rank in range(2)])


def test_newer_gpus_have_ptx() -> None:
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    kernels = [entry["command"] for entry in commands if entry["file"].startswith(f"{ROOT}/src/") and
               entry["file"].endswith(".cu")]  # fmt: skip
    if not kernels:
        pytest.skip("the build is without CUDA")
    assert [command for command in kernels if not re.search(r"code=\[?(sm_\d+,)?compute_", command)] == []


def test_reductions_compile_for_the_oldest_gpu(tmp_path: Path) -> None:
    """CI compiles for sm_90 alone; instructions of later GPUs than the first of the default list show here."""
    compiler = nvcc()
    (oldest,) = re.findall(r"set\(architectures (\d+)-real ", (ROOT / "cmake/CudaCompiler.cmake").read_text())
    source = tmp_path / "reductions.cu"
    source.write_text(REDUCTIONS)
    done(compiler, "-std=c++20", f"-arch=sm_{oldest}", "-cubin", "-I", ROOT / "src", "-o", tmp_path / "out", source)


def test_v100_is_served_if_the_compiler_can() -> None:
    """Kernels have code for sm_70 exactly if nvcc generates it; CUDA 13 does not."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    kernels = [entry["command"] for entry in commands if entry["file"].startswith(f"{ROOT}/src/") and
               entry["file"].endswith(".cu")]  # fmt: skip
    if not kernels:
        pytest.skip("the build is without CUDA")
    codes = subprocess.run([nvcc(), "--list-gpu-code"], capture_output=True, text=True, check=True).stdout.split()
    assert "sm_90" in codes
    with_code = [command for command in kernels if re.search(r"code=\[?(\w+,)*sm_70", command)]
    assert with_code == (kernels if "sm_70" in codes else [])


def test_the_fortran_module_has_the_constants_of_the_header(prefix: Path) -> None:
    header = (prefix / "include/waywiser/c/waywiser.h").read_text()
    module = (prefix / "include/waywiser/c/waywiser.f90").read_text()
    expected = dict(re.findall(r"  (WW_\w+) = (\d+)", header) + re.findall(r"[{,] (WW_\w+) = (\d+)", header))
    found = dict(re.findall(r"parameter :: (ww_\w+) = (\d+)", module))
    assert {name.lower().replace("ww_timeout", "ww_timed_out"): value for name, value in expected.items()} == found


def test_static(prefix: Path, tmp_path: Path) -> None:
    """Also of a build with CUDA, by a project that has no language but C++."""
    shutil.copytree(HERE / "cpp", tmp_path / "source")
    lists = tmp_path / "source/CMakeLists.txt"
    lists.write_text(lists.read_text().replace("waywiser::waywiser", "waywiser::waywiser_static"))
    made = tmp_path / "made"
    done(tool("cmake"), "-S", tmp_path / "source", "-B", made, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
         f"-Dwaywiser_ROOT={prefix}")  # fmt: skip
    done(tool("cmake"), "--build", made)
    assert "libwaywiser" not in done("ldd", made / "consumer")
    assert run(made / "consumer") == SUMS


def test_the_version_is_checked(prefix: Path, tmp_path: Path) -> None:
    shutil.copytree(HERE / "cpp", tmp_path / "source")
    lists = tmp_path / "source/CMakeLists.txt"
    lists.write_text(lists.read_text().replace("waywiser REQUIRED", "waywiser 99.0 REQUIRED"))
    command = [tool("cmake"), "-S", tmp_path / "source", "-B", tmp_path / "made", f"-Dwaywiser_ROOT={prefix}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode != 0 and 'requested version "99.0"' in answer.stderr


def test_a_source_tree_says_that_it_is_one() -> None:
    code, _, errors = finish(start("--cmake-dir"))
    assert code == 2 and "this is a source tree" in errors


def configure_as_part(build: Path, *options: str) -> None:
    done(tool("cmake"), "-S", HERE / "subdirectory", "-B", build, "-G", "Ninja", "-DWAYWISER_CUDA=OFF",
         f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-DWAYWISER_SOURCE={ROOT}",
         f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options)  # fmt: skip


@pytest.mark.skipif("WAYWISER_WHOLE_CONSUMERS" not in os.environ, reason="compiles the library again: make test-long")
@pytest.mark.timeout(3000)
def test_as_a_part_of_another_project_built_whole(tmp_path: Path) -> None:
    """By FetchContent: the library is compiled and linked there, and its program runs."""
    configure_as_part(tmp_path)
    subprocess.run([tool("ninja"), "-C", tmp_path, "consumer"], check=True, timeout=2900)
    assert run(tmp_path / "consumer") == SUMS


def test_as_a_part_of_another_project(tmp_path: Path) -> None:
    """By FetchContent; two of its objects are compiled: all of them are what `build` is made of already."""
    configure_as_part(tmp_path, "-DWAYWISER_UNITY=OFF")
    compiled = [
        entry
        for entry in json.loads((tmp_path / "compile_commands.json").read_text())
        if entry["file"].endswith(("base/version.cpp", "consumers/cpp/main.cpp"))
    ]
    assert len(compiled) == 2
    for entry in compiled:
        (tmp_path / entry["output"]).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(entry["command"], shell=True, cwd=entry["directory"], check=True)
    commands = done(tool("ninja"), "-C", tmp_path, "-t", "commands", "consumer")
    assert "libwaywiser.so" in commands
    assert "nanobind" not in commands and "waywiser_tests" not in commands


@pytest.mark.parametrize(
    ("kind", "cuda"),
    [*BUILDS_OF_OTHERS[0], *(pytest.param(*each, marks=pytest.mark.long) for each in BUILDS_OF_OTHERS[1])],
)
def test_a_part_of_another_project_is_optimised_and_few_objects(kind: str, cuda: bool, tmp_path: Path) -> None:
    compiler = [f"-DCMAKE_CUDA_COMPILER={nvcc()}", "-DCMAKE_CUDA_ARCHITECTURES=90", "-DWAYWISER_CUDA=ON"]
    configure_as_part(tmp_path, f"-D{kind}", *(compiler if cuda else []))
    commands = done(tool("ninja"), "-C", tmp_path, "-t", "commands", "consumer").splitlines()
    compiles = [line for line in commands if " -c " in line]
    of_us = [line for line in compiles if "consumers/cpp/main.cpp" not in line]
    assert len(compiles) == len(of_us) + 1 and 20 < len(of_us) < (72 if cuda else 48)
    assert any(line.endswith(".cu.o") for line in of_us) == cuda
    assert [line for line in of_us if re.findall(r" (-O\S*)", line)[-1:] != ["-O3"]] == []


def pc_flags(prefix: Path, package: str = "waywiser", fields: str = "Libs|Cflags") -> list[str]:
    """The output of pkg-config; read here, since pkg-config is not installed everywhere."""
    file = library_folder(prefix) / f"pkgconfig/{package}.pc"
    values = {"pcfiledir": str(file.parent)}
    flags = []
    for line in file.read_text().splitlines():
        line = re.sub(r"\$\{(\w+)\}", lambda found: values[found.group(1)], line)
        if found := re.match(r"(\w+)=(.*)", line):
            values[found.group(1)] = found.group(2)
        if found := re.match(rf"(?:{fields}): (.*)", line):
            flags += found.group(1).split()
        if found := re.match(r"Requires: (.*)", line):
            flags += pc_flags(prefix, found.group(1), fields)
    return flags


def test_pkg_config(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "consumer"
    rpath = f"-Wl,-rpath,{library_folder(prefix)}"
    done("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", HERE / "c/main.c", "-o", program, *pc_flags(prefix), rpath)
    assert run(program) == [f"rank {rank} of 2: all calls" for rank in range(2)]


def test_pkg_config_for_cpp(prefix: Path, tmp_path: Path) -> None:
    """Whatever language the compiler takes by itself."""
    program = tmp_path / "consumer"
    flags = [*pc_flags(prefix, "waywiser-cpp"), f"-Wl,-rpath,{library_folder(prefix)}"]
    done("c++", "-std=c++17", HERE / "cpp/main.cpp", "-o", program, *flags)
    assert run(program) == SUMS


def test_pkg_config_for_the_static_library(prefix: Path, tmp_path: Path) -> None:
    """A program in C lacks nothing, CUDA's runtime included, if the library was built with it."""
    static, program = library_folder(prefix) / "libwaywiser.a", tmp_path / "consumer"
    flags = [f"-I{prefix / 'include'}", static, *pc_flags(prefix, fields=r"Libs\.private")]
    done("cc", HERE / "c/main.c", "-o", program, *flags)
    assert "libwaywiser" not in done("ldd", program)
    assert run(program) == [f"rank {rank} of 2: all calls" for rank in range(2)]


def test_the_soname_has_the_version_of_the_interface(prefix: Path) -> None:
    assert f"[{SONAME}]" in done("readelf", "-d", library_folder(prefix) / SONAME)


def test_the_list_of_headers_is_what_is_installed(prefix: Path) -> None:
    installed = {str(path.relative_to("waywiser")) for path in public_headers(prefix)}
    assert {name for name in listed_headers() if Path(name).suffix} == installed


def test_public_headers_stand_alone_and_have_few_others(prefix: Path, tmp_path: Path) -> None:
    needs_more = {"waywiser/nvshmem.h",  # CUDA, and so do .cuh: test_cuda, nvshmem_test.py
                  "waywiser/c/waywiser_mpi.h", "waywiser/c/waywiser_mpi.hpp"}  # MPI: group_joining_test.py  # fmt: skip
    headers = [path for path in public_headers(prefix) if path.suffix != ".cuh" and str(path) not in needs_more]
    always = {"waywiser/waywiser.hpp", "waywiser/c/waywiser.h", *OF_PROTOCOLS}
    assert always <= {str(header) for header in headers}
    if "WAYWISER_WHOLE_CONSUMERS" not in os.environ:  # each takes half a second
        headers = [header for number, header in enumerate(headers) if number % 3 == 0 or str(header) in always]
    closures = {}
    for header in headers:
        source = tmp_path / "one.cpp"
        source.write_text(f"#include <{header}>\n")
        list_of_files = tmp_path / "one.d"
        options = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{prefix / 'include'}"]
        done("c++", *options, "-MMD", "-MF", list_of_files, source)
        used = list_of_files.read_text().split(":", 1)[1].replace("\\", "").split()
        assert all(path.startswith(str(prefix)) for path in used[1:])
        closures[str(header)] = len(used) - 1
    assert {header: closures.pop(header) for header in OF_PROTOCOLS} == OF_PROTOCOLS
    assert {header: count for header, count in closures.items() if count > MOST_HEADERS} == {}
    assert closures["waywiser/waywiser.hpp"] == MOST_HEADERS
