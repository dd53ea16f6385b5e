"""The PetscSF type "waywiser" in PETSc's own programs. Where there is no PETSc, all is skipped. With
WAYWISER_PETSC=whole (`make test-long`, lane petsc) that is a failure, and all of PETSc's tests run instead of a few."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import pytest
from consumers import done, prefix
from petsc_programs import PetscPrograms, has_gpus, unlike_lines, why_no_petsc
from rank_jobs import runtime_folder

import waywiser

__all__ = ["prefix", "runtime_folder"]
WHOLE = os.environ.get("WAYWISER_PETSC") == "whole"
TESTS = "vec/is/sf/tests/"
NO_PETSC = why_no_petsc()
pytestmark = pytest.mark.skipif(bool(NO_PETSC) and not WHOLE, reason=NO_PETSC)


@pytest.fixture(scope="module")
def petsc(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> PetscPrograms:
    assert not NO_PETSC, NO_PETSC
    return PetscPrograms(tmp_path_factory.mktemp("petsc"), prefix)


def options(*choices: tuple[str, str]) -> list[list[str]]:
    """All combinations of options, each with its values: ("-n", "1 3")."""
    named = [[(name, value) for value in values.split()] for name, values in choices]
    return [[word for pair in combination for word in pair] for combination in itertools.product(*named)]


MODES = "COPY_VALUES OWN_POINTER"
# Of the tests that PETSc ships for host memory: program, ranks, options, name of the reference.
REFERENCES: list[tuple[str, int, list[str], str]] = [
    *(("ex1", ranks, ["-user_sf_type", "waywiser"], f"ex1_basic_{ranks}") for ranks in (1, 2, 3)),
    ("ex10", 1, [], "ex10_0"), ("ex11", 2, [], "ex11_1"), ("ex12", 3, [], "ex12_1"), ("ex13", 3, [], "ex13_1"),
    ("ex14", 4, [], "ex14_1"),
    *(("ex16", 3, ["-testnum", str(number)], f"ex16_{number}") for number in (0, 1, 2)),
    *(("ex18", ranks, words, "ex18_1") for ranks in (1, 3) for words in options(
        ("-nsfs", "1 3"), ("-n_leaves_per_rank", "0 1 5"), ("-leave_step", "1 3"), ("-share_roots", "true false"))),
    *(("ex19", ranks, words, "ex19_1_a") for ranks in (1, 3) for words in options(
        ("-n_leaves_per_rank", "0 5"), ("-leave_step", "1 3"), ("-localmode", MODES), ("-remotemode", MODES))),
    *(("ex19", ranks, words, "ex19_1_b") for ranks in (1, 3) for words in options(
        ("-n_leaves_per_rank", "0 5"), ("-leave_step", "1 3"), ("-localmode", "USE_POINTER"),
        ("-remotemode", f"{MODES} USE_POINTER"))),
    ("ex1f", 4, [], "ex1f_1"), ("ex21", 1, [], "empty"),
    ("ex3", 2, ["-op", "replace"], "ex3_1"), ("ex3", 2, ["-op", "sum"], "ex3_2"),
    ("ex3", 3, ["-op", "replace"], "ex3_3"), ("ex3", 3, ["-op", "sum"], "ex3_4"),
    ("ex4", 1, [], "ex4_1"), ("ex4", 1, ["-sparse_sfB"], "ex4_2"),
    *(("ex5", ranks, ["-view", *more, "-explicit_inverse", inverse], name) for inverse in "01"
      for ranks, more, name in ((1, [], "ex5_1"), (7, ["-nl", "5"], "ex5_2"))),
    ("ex6", 2, [], "ex6_1"), ("ex7", 2, [], "ex7_1"), ("ex8", 2, [], "ex8_1"), ("ex8", 3, [], "ex8_2"),
    ("ex8", 3, ["-onlylocal", "1"], "ex8_3"), ("ex9", 7, ["-world2sub"], "ex9_1"),
    ("ex9", 7, ["-sub2sub"], "ex9_2"), ("ex9", 7, ["-world2subs"], "ex9_3"),
]  # fmt: skip
in_whole = pytest.mark.skipif(not WHOLE, reason="takes minutes: make test-long, lane petsc")
PROGRAMS = sorted({program for program, *_ in REFERENCES})


@pytest.mark.parametrize("program", [pytest.param(name, marks=[] if name == "ex9" else in_whole) for name in PROGRAMS])
def test_a_program_of_petsc_prints_what_petsc_ships(petsc: PetscPrograms, program: str) -> None:
    for _, ranks, arguments, name in (row for row in REFERENCES if row[0] == program):
        code, lines, errors = petsc.run(ranks, TESTS + program, *arguments)
        assert (code, errors) == (0, ""), arguments
        shipped, printed = petsc.reference(name), unlike_lines(lines)
        if name in ("ex8_2", "ex8_3"):  # PETSc leaves the headings out of these
            printed = [line for line in printed if not line.startswith("Process ")]
        assert printed == shipped, arguments


@in_whole
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_both_types_print_the_same_with_any_number_of_ranks(petsc: PetscPrograms, ranks: int) -> None:
    for program, arguments in (("ex1", []), ("ex3", ["-op", "sum"]), ("ex5", ["-view", "-nl", "5"]), ("ex8", [])):
        outputs = [petsc.run(ranks, TESTS + program, *arguments, sf_type=name) for name in ("basic", "waywiser")]
        assert [(code, errors) for code, _, errors in outputs] == [(0, "")] * 2, program
        basic, own = (unlike_lines(lines) for _, lines, _ in outputs)
        assert basic == own, program


RANKS = [pytest.param(ranks, marks=[] if ranks == 3 else in_whole) for ranks in (1, 2, 3, 4)]


@pytest.mark.parametrize("ranks", RANKS)
def test_random_forests_give_the_same_as_the_basic_type(petsc: PetscPrograms, ranks: int) -> None:
    code, lines, errors = petsc.run(ranks, "star_forests", "-cases", "200" if WHOLE else "20")
    assert (code, lines, errors) == (0, [f"{200 if WHOLE else 20} cases are equal"], "")


@pytest.mark.skipif(not has_gpus(), reason="needs a PETSc with CUDA, its sources, and a GPU")
@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_values_on_gpus_give_the_same_as_the_basic_type(petsc: PetscPrograms, ranks: int, each: int) -> None:
    code, lines, errors = petsc.run(ranks, "star_forests", "-cases", "50", "-gpu", str(each), "-use_gpu_aware_mpi", "0")
    assert (code, lines, errors) == (0, ["50 cases are equal"], "")


@pytest.mark.parametrize("transport", ["self,vader", "self,tcp"])
def test_mpi_messages_between_beginning_and_end(petsc: PetscPrograms, transport: str) -> None:
    """With TCP the sender of a large message must call MPI again."""
    of_mpi = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": transport}
    code, lines, errors = petsc.run(2, "messages_between", WAYWISER_TIMEOUT="30", **of_mpi)
    assert (code, lines, errors) == (0, ["all has arrived"], "")


@pytest.mark.parametrize("ranks", RANKS)
def test_a_solver_makes_the_same_iterates(petsc: PetscPrograms, ranks: int, tmp_path: Path) -> None:
    for iterations in ("3", "50"):
        results = []
        for name in ("basic", "waywiser"):
            vector = tmp_path / f"{name}.{iterations}"
            code, lines, errors = petsc.run(
                ranks, "ksp/ksp/tutorials/ex2", "-m", "60", "-n", "60", "-ksp_monitor", "-ksp_max_it", iterations,
                "-ksp_view_solution", f"binary:{vector}", "-ksp_rtol", "1e-9", sf_type=name)  # fmt: skip
            assert (code, errors) == (0, "")
            results.append((lines, vector.read_bytes()))
        assert len(results[0][1]) > 8 * 60 * 60 and len(results[0][0]) > int(iterations)
        assert results[0] == results[1]


def test_the_scatter_of_a_matrix_is_of_the_type(petsc: PetscPrograms) -> None:
    code, lines, errors = petsc.run(2, "ksp/ksp/tutorials/ex2", "-mat_view", "::ascii_info_detail")
    assert (code, errors) == (0, "")
    assert any(line.strip() == "type: waywiser" for line in lines)


def libucp_of_view(lines: list[str]) -> str:
    (found,) = {match[1] for line in lines if (match := re.fullmatch(r"  carried by Waywiser \S+, UCX: (.*)", line))}
    return str(found)


def test_it_takes_the_libucp_that_mpi_has_mapped_and_says_which(petsc: PetscPrograms) -> None:
    given = waywiser.libucp.path
    if given is None:
        pytest.skip("there is no libucp beside that of MPI")
    view = (2, TESTS + "ex1", "-user_sf_type", "waywiser")
    code, lines, _ = petsc.run(*view, WAYWISER_LIBUCP=str(given))
    assert code == 0 and os.path.realpath(libucp_of_view(lines)) == os.path.realpath(given)
    by_ucx = {"OMPI_MCA_pml": "ucx", "OMPI_MCA_pml_ucx_tls": "any", "OMPI_MCA_pml_ucx_devices": "any"}
    code, lines, _ = petsc.run(*view, WAYWISER_LIBUCP=str(given), **by_ucx)
    assert code == 0 and os.path.realpath(libucp_of_view(lines)) != os.path.realpath(given)


@in_whole
def test_petsc_remaps_only_its_own_types(petsc: PetscPrograms) -> None:
    """VecScatterRemap() asks for the name of the type."""
    code, _, errors = petsc.run(2, TESTS + "ex15")
    assert code != 0 and "VecScatterRemap on SF type waywiser is not supported" in errors


def test_another_petsc_is_refused_in_one_line(petsc: PetscPrograms, tmp_path: Path) -> None:
    """A PETSc that says that it is 3.17."""
    other, source = tmp_path / "other.so", tmp_path / "other.c"
    source.write_text(
        "int PetscGetVersionNumber(int *a, int *b, int *c, int *d) { *a = 3, *b = 17, *c = 0; return 0; }"
    )
    done("cc", "-shared", "-fPIC", source, "-o", other)
    code, lines, errors = petsc.run(1, TESTS + "ex10", LD_PRELOAD=str(other))
    assert code == 2
    ours = [line for line in [*lines, *errors.splitlines()] if "waywiser" in line]
    assert len(ours) == 1, errors
    assert re.fullmatch(r"waywiser: the PetscSF type cannot be used: built for PETSc \d+\.\d+, this is 3\.17", ours[0])


def test_ranks_that_no_launcher_has_started_together_are_refused(petsc: PetscPrograms) -> None:
    two = ["env", "WAYWISER_RANK=0", "WAYWISER_SIZE=2"]  # inside mpirun; outside, mpirun would be the inner launcher
    code, lines, errors = petsc.run(1, TESTS + "ex10", before=two, WAYWISER_TIMEOUT="1")
    assert code == 2
    assert [line for line in [*lines, *errors.splitlines()] if line.startswith("waywiser: the PetscSF type cannot be")]
