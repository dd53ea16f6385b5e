"""The libucp that the library chooses, seen from Python; tests/transport/libucp_choice_test.cpp has the rule."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rank_jobs import ROOT
from verb_runs import Run

import waywiser
from waywiser.ucx_library import LibucpChoice, name_wheel


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nobody has named a libucp, and no folder of the system is listed."""
    for variable in ("WAYWISER_LIBUCP", "WAYWISER_LIBUCX", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


CHOICE = """
import waywiser
print(waywiser.libucp.origin, waywiser.libucp.path)
"""


def test_the_core_takes_the_wheel_that_python_names(elsewhere: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec("libucx")
    if found is None:
        pytest.skip("no libucx")
    name_wheel()
    (folder,) = found.submodule_search_locations or []
    assert os.environ["WAYWISER_LIBUCX"] == f"{folder}/lib"
    elsewhere.setenv("WAYWISER_LIBUCX", "/somebody's")
    name_wheel()
    assert os.environ["WAYWISER_LIBUCX"] == "/somebody's"


def test_a_named_copy_wins(elsewhere: pytest.MonkeyPatch) -> None:
    run_program(CHOICE + 'assert waywiser.libucp.origin == "environment"', WAYWISER_LIBUCP="/named/libucp.so.0")


def test_a_wheel_or_one_of_the_system_is_found(elsewhere: pytest.MonkeyPatch) -> None:
    run_program(CHOICE + 'assert waywiser.libucp.origin in ("wheel", "system") and waywiser.libucp.path.exists()')
    assert isinstance(waywiser.libucp, LibucpChoice)


IN_C = """
import ctypes, re, sys
library = ctypes.CDLL(sys.argv[1])
group = ctypes.c_void_p()
library.ww_error_text.restype = ctypes.c_char_p
assert library.ww_join(None, ctypes.byref(group)) == 0, library.ww_error_text()
print(*re.findall(r"\\S+/libucp\\S*", open("/proc/self/maps").read())[:1])
library.ww_close(group)
"""


@pytest.mark.parametrize("where", ["beside the wheel", "named", "an installation prefix"])
def test_a_program_in_c_takes_the_same(elsewhere: pytest.MonkeyPatch, tmp_path: Path, where: str) -> None:
    """Without Python's package and `waywiser run`: also from a prefix, whose library knows the Python of its build."""
    name_wheel()
    library, chosen = ROOT / "build" / "libwaywiser.so", waywiser.libucp
    if not library.exists() or chosen.path is None or chosen.origin != "wheel":
        pytest.skip("no build/libwaywiser.so, or no libucx that would be chosen")
    site = tmp_path / ("site-packages" if where == "beside the wheel" else "prefix")
    (site / "waywiser" / "lib").mkdir(parents=True)
    if where == "beside the wheel":
        (site / "libucx").symlink_to(chosen.path.parents[1])
    linked = Path(shutil.copy(library, site / "waywiser" / "lib"))
    if where != "named":
        elsewhere.delenv("WAYWISER_LIBUCX")
    program = [sys.executable, "-I", "-c", IN_C, linked]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).resolve() == chosen.path.resolve()


def test_the_doctor_says_which_it_is(elsewhere: pytest.MonkeyPatch, run: Run) -> None:
    code, out, _ = run("doctor", "--alone", "--only", "D33")
    if waywiser.libucp.path is None:
        pytest.skip("no UCX")
    assert code in (0, 1)
    wanted = f"Waywiser takes {waywiser.libucp.path} ({waywiser.libucp.origin})"
    assert "".join(wanted.split()) in "".join(out.split())  # lines are broken within a long path


JOIN = """
import ctypes
import waywiser as ww
libc = ctypes.CDLL(None)
def code():
    functions = [ctypes.cast(getattr(libc, name), ctypes.c_void_p).value for name in ("mmap", "munmap", "shmdt")]
    return [ctypes.string_at(function, 16) for function in functions]
before = code()
with ww.join() as group:
    group.barrier()
assert code() == before, "a function of the C library was replaced"
getenv = libc.getenv
getenv.restype = ctypes.c_char_p
assert getenv(b"UCX_MEM_MMAP_HOOK_MODE") is None and getenv(b"UCX_MEM_CUDA_HOOK_MODE") is None
"""


def run_program(program: str, **variables: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "UCX_MEMTYPE_CACHE"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment | variables, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_a_group_within_a_machine_replaces_no_function() -> None:
    """UCX would take a second for that, which only a network card's registrations need."""
    run_program(JOIN)


CACHE = """
import ctypes, re
import waywiser as ww
ww.join().close()
library = ctypes.CDLL(re.search(r"\\S+/libucs\\.so\\S*", open("/proc/self/maps").read())[0])
value = ctypes.create_string_buffer(32)
assert library.ucs_global_opts_get_value(b"MEMTYPE_CACHE", value, ctypes.c_size_t(32)) == 0
assert value.value == EXPECTED, value.value
"""


@pytest.mark.parametrize(("expected", "variables"), [("n", {}), ("try", {"UCX_MEMTYPE_CACHE": "try"})])
def test_ucx_asks_cuda_what_an_address_is(expected: str, variables: dict[str, str]) -> None:
    """Its cache would take GPU memory that its hooks have not seen for host memory, and the CPU would read it."""
    run_program(CACHE.replace("EXPECTED", repr(expected.encode())), **variables)
