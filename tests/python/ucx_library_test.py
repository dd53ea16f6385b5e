"""Which libucp is chosen, in order: mapped, named by the environment, the system's or the wheel's as the machine is."""

from __future__ import annotations

from pathlib import Path

import pytest

from waywiser import ucx_library
from waywiser.ucx_library import LibucpChoice, find_libucp, select_libucp


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No libucp anywhere, until a test puts one somewhere."""
    monkeypatch.delenv("WAYWISER_LIBUCP", raising=False)
    for place in ("_mapped", "_system", "_wheel"):
        monkeypatch.setattr(ucx_library, place, lambda: None)
    monkeypatch.setattr(ucx_library, "_has_nvidia_driver", lambda: False)
    monkeypatch.setattr(ucx_library, "_has_rdma_device", lambda: True)
    return monkeypatch


def test_order_of_the_places(places: pytest.MonkeyPatch) -> None:
    assert find_libucp() == LibucpChoice(None, "none")
    places.setattr(ucx_library, "_wheel", lambda: Path("/wheel"))
    assert find_libucp() == LibucpChoice(Path("/wheel"), "wheel")
    places.setattr(ucx_library, "_system", lambda: Path("/system"))
    assert find_libucp() == LibucpChoice(Path("/system"), "system")
    places.setenv("WAYWISER_LIBUCP", "/named")
    assert find_libucp() == LibucpChoice(Path("/named"), "environment")
    places.setattr(ucx_library, "_mapped", lambda: Path("/mapped"))
    assert find_libucp() == LibucpChoice(Path("/mapped"), "mapped")


def test_without_rdma_the_wheel_comes_first(places: pytest.MonkeyPatch) -> None:
    places.setattr(ucx_library, "_has_rdma_device", lambda: False)
    places.setattr(ucx_library, "_system", lambda: Path("/system"))
    assert find_libucp() == LibucpChoice(Path("/system"), "system")
    places.setattr(ucx_library, "_wheel", lambda: Path("/wheel"))
    assert find_libucp() == LibucpChoice(Path("/wheel"), "wheel")


def test_with_a_gpu_a_copy_with_cuda_comes_first(places: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("system", "wheel"):
        (tmp_path / name / "ucx").mkdir(parents=True)
        places.setattr(ucx_library, f"_{name}", lambda name=name: tmp_path / name / "libucp.so.0")
    (tmp_path / "wheel" / "ucx" / "libuct_cuda.so.0").touch()
    assert find_libucp().origin == "system"
    places.setattr(ucx_library, "_has_nvidia_driver", lambda: True)
    assert find_libucp().origin == "wheel"
    (tmp_path / "system" / "ucx" / "libuct_cuda.so").touch()
    assert find_libucp().origin == "system"


def test_the_choice_is_left_in_the_environment(places: pytest.MonkeyPatch) -> None:
    import os

    places.setenv("WAYWISER_LIBUCP", "")
    select_libucp()
    assert os.environ["WAYWISER_LIBUCP"] == ""
    places.setattr(ucx_library, "_wheel", lambda: Path("/wheel"))
    assert select_libucp().origin == "wheel"
    assert os.environ["WAYWISER_LIBUCP"] == "/wheel"


def test_a_listed_folder_comes_before_the_usual_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libucp.so.0").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/none::{tmp_path}")
    assert ucx_library._system() == tmp_path / "libucp.so.0"


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
    import os
    import subprocess
    import sys

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
