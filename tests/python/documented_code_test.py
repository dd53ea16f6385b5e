"""The C++, C and Fortran of README.md and of the pages compile against the headers that an installation has."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from consumers import NO_GFORTRAN, listed_headers, nvcc

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Page -> what its excerpts use without declaring it; if they use different things, one text for each.
CPP: dict[str, tuple[str, ...]] = {
    "README.md": ("std::vector<double>& x",),
    "docs/groups.md": ("Group& group, Elements x, Elements y, Elements z, Stream& stream, int right, int left",),
    "docs/halo.md": ("Group& group, std::vector<HaloArray> fields",),
    "docs/howto-remote.md": ("std::vector<double> a, std::vector<double> b, std::vector<double> sum",),
    "docs/one-sided.md": (
        "Group& group, int device, cudaStream_t stream, Stream* borrowed",
        "Heap& heap, Stream& stream, ConstRegion data, int right, int left, std::size_t offset, HeapTeam& team",
    ),
    "docs/tables.md": (
        "Group& group, ArrowSchema& schema, Batch& batch, std::span<const int> key_columns, void work(int, ArrowArray)",
    ),
}
C = {
    "docs/halo.md": "ww_group* group, double* pressure, float* velocity, int steps, void compute(double*, float*)",
    "docs/programs.md": "double* x, double* total, size_t n",
    "docs/storage.md": "double* field, size_t n",
    "docs/tables.md": "ww_group* group, struct ArrowSchema* schema, struct ArrowArray* batch, int* key_columns, "
    "void work(int, struct ArrowArray*)",
}
# Their code is an excerpt of these.
QUOTED = {
    "docs/apps/conjugate_gradient.md": "apps/conjugate_gradient/conjugate_gradient.hpp",
    "docs/programs.md": "tests/consumers/cpp/main.cpp",
    "docs/tutorial/11_one_sided.md": "examples/11_one_sided.cpp",
}
USUAL = """
#include <waywiser/halo/grid.hpp>
#include <waywiser/halo/halo_exchange.hpp>
#include <waywiser/heap/heap.hpp>
#include <waywiser/offload/connect.hpp>
#include <waywiser/waywiser.hpp>
namespace waywiser::one_sided {}
using namespace waywiser;
using namespace waywiser::one_sided;
"""


def blocks(language: str) -> list[tuple[str, str]]:
    """Page and text of each block of a language; CONTRIBUTING.md is about the inside."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    pages = [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in PAGES]
    return [(page, text) for page, whole in pages if page != "CONTRIBUTING.md" for text in pattern.findall(whole)]


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An include folder with the headers that `cmake --install` and the wheel have, and no others."""
    folder = tmp_path_factory.mktemp("include")
    for name in listed_headers():
        (folder / "waywiser" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "waywiser" / name).symlink_to(ROOT / "src/waywiser" / name)
    return folder


def compiled(command: list[str | Path], source: Path, text: str) -> None:
    source.write_text(text)
    answer = subprocess.run([*command, source], capture_output=True, text=True, check=False, cwd=source.parent)
    assert answer.returncode == 0, answer.stderr


def as_function(page: str, text: str, number: int, given: str, kind: str = "void") -> str:
    """A function that takes `given` and does what `text` says; before it, the kernels and the lines that include."""
    outside = "|".join((r"#include [^\n]*", r"using namespace [^\n]*", r"__global__ .*?\n\}"))
    before = re.findall(rf"^(?:{outside})$", text, re.DOTALL | re.MULTILINE)
    for each in before:
        text = text.replace(each, "", 1)
    body = f'{kind} sample_{number}({given}) {{\n#line 1 "{page}, block {number}"\n{text}\n'
    return "\n".join([*before, body])


def test_every_header_that_a_page_includes_is_installed() -> None:
    pages = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in PAGES}
    named = [
        (page, name) for page, text in pages.items() for name in re.findall(r"#include [<\"]waywiser/([^>\"]+)", text)
    ]
    assert len(named) >= 5
    assert [each for each in named if each[1] not in listed_headers()] == []


def excerpts() -> list[tuple[str, str, str]]:
    """Page, text and what is given to each block of C++ that is in no source."""
    texts: dict[str, list[str]] = {}
    for page, text in blocks("cpp"):
        if page not in QUOTED:
            texts.setdefault(page, []).append(text)
    assert texts.keys() == CPP.keys()
    given = {page: CPP[page] * (len(each) if len(CPP[page]) == 1 else 1) for page, each in texts.items()}
    return [(page, *each) for page in texts for each in zip(texts[page], given[page], strict=True)]


def test_what_is_quoted_is_in_the_source() -> None:
    found = [(page, text) for page, text in blocks("cpp") if page in QUOTED]
    assert {page for page, _ in found} == QUOTED.keys()
    sources = {page: "".join((ROOT / source).read_text().split()) for page, source in QUOTED.items()}
    assert [(page, text) for page, text in found if "".join(text.split()) not in sources[page]] == []


def test_cpp(headers: Path, tmp_path: Path) -> None:
    numbered = enumerate(each for each in excerpts() if "__global__" not in each[1])
    functions = [as_function(page, text, number, given) + "}\n" for number, (page, text, given) in numbered]
    options = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-fsyntax-only"]
    compiled(["c++", *options, f"-I{headers}"], tmp_path / "samples.cpp", USUAL + "".join(functions))


def test_cuda(headers: Path, tmp_path: Path) -> None:
    compiler = nvcc()
    ((page, text, given),) = (each for each in excerpts() if "__global__" in each[1])
    whole = USUAL + as_function(page, text, 0, given) + "}\n"
    compiled([compiler, "-std=c++20", "-arch=sm_90", "-ptx", f"-I{headers}"], tmp_path / "sample.cu", whole)


def test_c(headers: Path, tmp_path: Path) -> None:
    assert {page for page, _ in blocks("c")} == C.keys()
    functions = [
        as_function(page, text, number, C[page], "int") + "return 0;\n}\n"
        for number, (page, text) in enumerate(blocks("c"))
    ]
    before = "#include <stdio.h>\n#include <waywiser/c/waywiser.h>\n"
    options = ["-std=c99", "-Wall", "-Werror", "-fsyntax-only"]
    compiled(["cc", *options, f"-I{headers}"], tmp_path / "samples.c", before + "".join(functions))


def test_fortran_needs_the_standard_that_the_page_names(tmp_path: Path) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip(NO_GFORTRAN)
    module, c = tmp_path / "waywiser.f90", ROOT / "src/waywiser/c"
    make: list[str | Path] = [
        sys.executable,
        ROOT / "cmake/fortran_module.py",
        c / "waywiser.h",
        c / "waywiser.f90.in",
        module,
    ]
    subprocess.run(make, check=True)
    ((_, text),) = blocks("fortran")
    program = f"""{text.splitlines()[0]}
        implicit none
        type(c_ptr) :: group
        integer, parameter :: n = 9
        real(c_double), target :: x(n), total(n)
        {text.splitlines()[1]}
        contains
        subroutine check(code)
        integer(c_int), intent(in) :: code
        end subroutine
        end"""
    assert "-std=f2018" in (ROOT / "docs/programs.md").read_text()
    compiled(["gfortran", "-std=f2018", "-c"], module, module.read_text())
    compiled(["gfortran", "-std=f2018", "-fsyntax-only"], tmp_path / "program.f90", program)
    with pytest.raises(AssertionError, match="Fortran 2018"):
        compiled(["gfortran", "-std=f2008", "-fsyntax-only"], module, module.read_text())


def test_the_page_names_the_cmake_that_the_library_needs() -> None:
    (needed,) = re.findall(r"^cmake_minimum_required\(VERSION ([\d.]+)\)", (ROOT / "CMakeLists.txt").read_text(), re.M)
    assert f"CMake {needed}" in (ROOT / "docs/programs.md").read_text()
