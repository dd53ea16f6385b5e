"""The programs of apps/: each checks its own result, by every way to exchange, on hosts and on virtual GPUs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from consumers import nvcc
from rank_jobs import MPIRUN, NO_PLAN, ROOT, finish, runtime_folder, start

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow
APPS, BUILT = ROOT / "apps", ROOT / "build/apps"
ON_HOSTS = ["whole_field", "per_neighbor", "packed", "automatic"]
# Sizes that no number of ranks divides.
CASES = {
    "jacobi": ["--size", "37x22"],
    "conjugate_gradient": ["--size", "5x6x7"],
    "wilson_dslash": ["--size", "4x5x3x6"],
    "convolution": ["--size", "19x13", "--images", "2"],
}
QUICK = ["--rounds", "1", "--steps", "5", "--format", "json"]

if not BUILT.exists():
    pytest.skip("the programs are not built here", allow_module_level=True)


def ways(rows: list[dict[str, Any]]) -> list[str]:
    return [row["way"].split(" ")[0] for row in rows]


def answers(command: list[str | Path]) -> list[dict[str, Any]]:
    """What a program printed, a line for each comparison."""
    code, lines, errors = finish(start("run", *command))
    assert code == 0 and errors in ("", NO_PLAN), errors
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name", CASES)
def test_every_way_equals_the_undivided_computation(name: str, ranks: int) -> None:
    found = answers(["-n", str(ranks), BUILT / name, *CASES[name], *QUICK, "--undivided", "yes"])
    assert found
    for each in found:
        assert each["ranks"] == ranks and not each["virtual"]
        assert ways(each["rows"]) == ON_HOSTS
        assert each["unavailable"]["direct"] == "the fields are in host memory, which no kernel serves"


@pytest.mark.parametrize("name", CASES)
def test_every_way_is_right_on_virtual_gpus(name: str) -> None:
    found = answers(["-n", "2", BUILT / f"{name}_virtual", *CASES[name], *QUICK, "--undivided", "yes"])
    for each in found:
        assert each["virtual"] and "virtual GPUs" in each["place"]
        on_gpus = ["direct", "strided", "gpu_aware"]
        assert ways(each["rows"]) == [*ON_HOSTS[:3], *on_gpus, "automatic"]


@pytest.mark.parametrize("program", [*CASES, *(f"{name}_virtual" for name in CASES)])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_steps_in_one_kernel_equal_the_undivided_computation(program: str, ranks: int) -> None:
    case = CASES[program.removesuffix("_virtual")]
    found = answers(["-n", str(ranks), BUILT / program, *case, *QUICK, "--fused", "only", "--undivided", "yes"])
    assert found
    for each in found:
        assert each["ranks"] == ranks and ways(each["rows"]) == ["fused"]


@pytest.mark.parametrize("name", CASES)
def test_steps_in_one_kernel_are_compared_with_the_others(name: str) -> None:
    """Also with boxes of two sizes, in the last dimension alone."""
    parts = "x".join(["1"] * CASES[name][1].count("x") + ["3"])
    command = ["-n", "3", BUILT / f"{name}_virtual", *CASES[name], *QUICK, "--fused", "yes", "--parts", parts]
    for each in answers(command):
        fused = [] if each["title"].endswith(" simple") else ["fused"]
        others = [*ON_HOSTS[:3], "direct", "strided", "gpu_aware", "automatic"]
        assert ways(each["rows"]) == [*others, *fused]


@pytest.mark.parametrize("size", ["1", "2"])
def test_conjugate_gradients_stay_at_an_exact_solution(size: str) -> None:
    """What is left is 0 after some steps, and the next ones would divide by it."""
    options = ["--size", size, "--rounds", "1", "--steps", "500", "--format", "json", "--way", "packed"]
    found = answers(["-n", "1", BUILT / "conjugate_gradient", *options])
    assert len(found) == 2 and all(each["error"] < 1e-14 for each in found)


@pytest.mark.parametrize("name", CASES)
def test_a_program_notices_ghosts_that_were_not_filled(name: str) -> None:
    code, lines, errors = finish(start("run", "-n", "2", BUILT / name, *CASES[name], *QUICK, "--way", "none"))
    assert code == 1 and lines == []
    assert "the result of none is wrong: its error is" in errors


@pytest.mark.parametrize(("name", "ranks"), [*((name, 2) for name in CASES), ("conjugate_gradient", 1)])
@pytest.mark.skipif(not MPIRUN, reason="there is no mpirun")
def test_mpi_is_compared_too(name: str, ranks: int) -> None:
    if not (BUILT / f"{name}_mpi").exists():
        assert not Path(sys.executable).with_name("mpicxx").exists(), "the build has not found the wheel of Open MPI"
        pytest.skip("the programs were built without MPI")
    command = [*MPIRUN, "-n", str(ranks), str(BUILT / f"{name}_mpi"), *CASES[name], *QUICK, "--undivided", "yes"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    for each in map(json.loads, done.stdout.splitlines()):
        assert ways(each["rows"]) == [*ON_HOSTS, "mpi"]


def test_nvshmem_is_compared_wherever_steps_are_fused() -> None:
    fused = {path.parent.name for path in APPS.glob("*/*.hpp") if "FusedField<" in path.read_text()}
    listed = re.search(r'name MATCHES "\^\(([\w|]+)\)\$"', (ROOT / "cmake/Apps.cmake").read_text())
    assert listed and set(listed.group(1).split("|")) == fused == set(CASES)


@pytest.mark.parametrize("source", ["apps/jacobi/jacobi.cu", "benchmarks/cuda/halo_nvshmem.cu"])
def test_kernels_with_nvshmems_calls_compile(source: str, tmp_path: Path) -> None:
    """Where NVSHMEM is not installed: with this library's header of its names."""
    out = tmp_path / "out"
    options = ["-std=c++20", "-arch=sm_90", "-ptx", "--extended-lambda", "-DAPPS_NVSHMEM"]
    folders = [f"-I{ROOT / folder}" for folder in (".", "src", "tests/apps/nvshmem_names")]
    flags = shlex.split(os.environ.get("CUDAFLAGS", ""))  # as the build has them
    command = [nvcc(), *options, *flags, *folders, "-o", out, ROOT / source]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stderr
    for call in ("fused_nvshmem_kernel", "fused_kernel") if "apps" in source else ("exchange_faces",):
        assert call in out.read_text()


def key_of_kind(face: tuple[int, ...], magnitude: int, contiguous: int) -> str:
    """As a plan names the sides of this kind, on one machine."""
    bits = f"11{contiguous}{magnitude:06b}{len(face):04b}" + "".join(map(str, face)).ljust(4, "0")
    return f"{int(bits, 2):x}"


@pytest.mark.parametrize("name", CASES)
def test_automatic_takes_a_mix_that_an_earlier_run_has_kept(name: str) -> None:
    """Sides across odd dimensions are packed, the others sent one by one. Where a program names no dimensions, their
    size decides: to the power of two it differs between the sides."""
    dimensions = CASES[name][1].count("x") + 1
    parts = "x".join(["2", "2", "1", "1"][:dimensions])
    command = ["-n", "4", BUILT / name, *CASES[name], *QUICK, "--parts", parts, "--undivided", "yes",
               "--way", "automatic", "--answers", "answers.json"]  # fmt: skip
    answers(command)
    value = json.loads(Path("answers.json").read_text())
    assert value["rows"]
    faces = [(), *(tuple(int(i == axis) for i in range(dimensions)) for axis in range(dimensions))]
    kinds = [(face, magnitude, contiguous) for face in faces for magnitude in range(24) for contiguous in (0, 1)]
    ways = [("per_neighbor", "packed")[(face.index(1) if face else magnitude) % 2] for face, magnitude, _ in kinds]
    mix = ",".join(f"{key_of_kind(*kind)}={way}" for kind, way in zip(kinds, ways, strict=True))
    for each in value["rows"]:
        each["ways"].insert(0, {"way": f"mixed({mix},other=packed)", "ratio": 1})
    Path("answers.json").write_text(json.dumps(value))
    found = answers(command)
    assert found and {row["way"] for each in found for row in each["rows"]} == {"automatic (mixed)"}


def test_the_table_is_for_people() -> None:
    options = ["--size", "16x16", "--rounds", "1", "--steps", "2"]
    code, lines, errors = finish(start("run", "-n", "2", BUILT / "jacobi", *options))
    assert (code, errors) == (0, "")
    table = "\n".join(lines)
    assert "jacobi: 16 x 16 float32, boxes of up to 8 x 16" in table
    assert re.search(r"^packed +\d+\.\d +\(\d+\.\d to \d+\.\d\) +\d+\.\d %$", table, re.MULTILINE)
    assert "direct                     unavailable: the fields are in host memory" in table
    assert "every result is right: the largest error is" in table


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--size", "1y2"], "--size '1y2': whole numbers from 1 to 1048576"),
        (["--size", "1x2x3"], "--size '1x2x3': write 2 numbers with x between"),
        (["--parts", "3x1"], "--parts '3x1': not as many as the 2 ranks"),
        (["--size", "1x1"], "1 cells in 2 parts: each has at least 1"),
        (["--steps", "0"], "--steps '0': whole numbers from 1 to"),
        (["--threads", "0"], "--threads '0': whole numbers from 1 to 1024"),
        (["--way", "fastest"], "--way 'fastest': write one of all, none, whole_field,"),
        (["--fused", "maybe"], "--fused 'maybe': write one of no, yes, only"),
        (["--colour", "red"], "'--colour': the options are --help, --size,"),
        (["--steps"], "--steps needs a value"),
    ],
)
def test_bad_input_gets_one_line(words: list[str], why: str) -> None:
    ranks = "2" if "2" in why else "1"
    code, lines, errors = finish(start("run", "-n", ranks, BUILT / "jacobi", *words))
    assert (code, lines) == (2, [])
    said = [line for line in errors.splitlines() if not line.startswith("waywiser: rank ")]
    assert len(said) == 1 and said[0].startswith(f"jacobi: {why}"), errors


def sources() -> list[Path]:
    return [path for path in sorted(APPS.rglob("*")) if path.suffix in (".cpp", ".hpp", ".cu", ".cuh")]


def test_programs_use_public_headers_alone() -> None:
    public = re.search(r"set\(public_headers\n(.*?)\)", (ROOT / "cmake/Library.cmake").read_text(), re.DOTALL)
    assert public is not None
    allowed = {f"waywiser/{name}" for name in public.group(1).split()}
    wrong = []
    for path in sources():
        included = re.findall(r'#include [<"](waywiser/[^>"]+)[>"]', path.read_text())
        wrong += [f"{path.relative_to(ROOT)}: {header}" for header in included if header not in allowed]
    assert wrong == []


def test_files_are_short() -> None:
    assert [path.name for path in sources() if len(path.read_text().splitlines()) >= 300] == []
    simple = (APPS / "conjugate_gradient/conjugate_gradient.hpp").read_text().splitlines()
    assert len(simple) < 200


def test_every_program_has_a_page() -> None:
    assert [name for name in CASES if not (ROOT / f"docs/apps/{name}.md").exists()] == []
    assert [name for name in CASES if f"({name}.md)" not in (ROOT / "docs/apps/README.md").read_text()] == []
