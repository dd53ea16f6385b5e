"""NVTX ranges of the calls on GPUs, in a library that stands for NVTX."""

from __future__ import annotations

import pytest
from rank_jobs import ROOT, run, runtime_folder

__all__ = ["runtime_folder"]
FAKE = ROOT / "build/libfake_nvtx.so"
CALLS = """
import ctypes, numpy as np, waywiser as ww
gpus = ww.virtual_gpus(2)
group = ww.join(gpus=gpus)
stream = gpus.open_stream(group.rank)
array = gpus.array(np.arange(8, dtype=np.int32), group.rank)
group.all_reduce(array, out=array, op="max", stream=stream)
group.send(array, 1, stream=stream) if group.rank == 0 else group.recv(array, 0, stream=stream)
group.synchronize(array, stream=stream)
"""


@pytest.mark.skipif(not FAKE.exists(), reason="the library that stands for NVTX is not built here")
def test_ranges_have_the_names_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_NVTX", "1")
    monkeypatch.setenv("WAYWISER_LIBNVTX", str(FAKE))
    code = f"""
    fake = ctypes.CDLL({str(FAKE)!r})
    fake.fake_nvtx_names.restype = ctypes.c_char_p
    first, second = fake.fake_nvtx_names().decode().splitlines()
    assert first.startswith("all_reduce #") and first.endswith(" of 8 int32, max"), first
    assert second == ("send #1 of 8 int32 to rank 1" if group.rank == 0 else "recv #1 of 8 int32 from rank 0"), second
    assert fake.fake_nvtx_depth() == 0
    """
    assert run(2, code, program=CALLS)[0] == 0


def test_without_a_library_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_NVTX", "1")
    monkeypatch.setenv("WAYWISER_LIBNVTX", "/nowhere/libnvtx.so")
    code, _, errors = run(2, "", program=CALLS)
    assert code == 0 and errors.count("WAYWISER_NVTX=1, but there is no NVTX") == 2 and "/nowhere/libnvtx.so" in errors
