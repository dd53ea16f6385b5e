"""NVTX ranges of the calls of a group, in a library that stands for NVTX."""

from __future__ import annotations

import pytest
from rank_jobs import ROOT, run, runtime_folder

import waywiser as ww

__all__ = ["runtime_folder"]
FAKE = ROOT / "build/libfake_nvtx.so"
NAMES = f"""
import ctypes, numpy as np, waywiser as ww
def names():
    fake = ctypes.CDLL({str(FAKE)!r})
    fake.fake_nvtx_names.restype = ctypes.c_char_p
    assert fake.fake_nvtx_depth() == 0
    return fake.fake_nvtx_names().decode().splitlines()
"""
CALLS = """
import numpy as np, waywiser as ww
gpus = ww.virtual_gpus(2)
group = ww.join(gpus=gpus)
stream = gpus.open_stream(group.rank)
array = gpus.array(np.arange(8, dtype=np.int32), group.rank)
group.all_reduce(array, out=array, op="max", stream=stream)
group.send(array, 1, stream=stream) if group.rank == 0 else group.recv(array, 0, stream=stream)
group.synchronize(array, stream=stream)
"""
ON_HOSTS = """
group = ww.join()
other = 1 - group.rank
x, y = np.arange(8, dtype=np.int32), np.zeros(8, dtype=np.int32)
group.all_reduce(x, out=y, op="max")
sent = group.start_send(x, other, 3)
status = group.probe(other, 3)
group.recv(y, other, 3)
while not sent.done():
    pass
prepared = group.prepare_collective("all_reduce", x, y)
before = len(names())
prepared.start()
prepared.wait()
during = names()[before:]
window = group.expose(y)
group.put(x, window, other)
group.flush()
try:
    group.recv(y[:2], other, 9) if group.rank == 0 else group.send(y[:3], other, 9)
    group.barrier()
    raise SystemExit("a short array was taken")
except ww.InputError:
    pass
"""
pytestmark = pytest.mark.skipif(not FAKE.exists(), reason="the library that stands for NVTX is not built here")


@pytest.fixture
def switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_NVTX", "1")
    monkeypatch.setenv("WAYWISER_LIBNVTX", str(FAKE))


@pytest.mark.usefixtures("switched_on")
def test_calls_of_gpus_are_ranges() -> None:
    code = """
    shown = names()
    assert sum(name.startswith("all_reduce #") and name.endswith(" of 8 int32, max") for name in shown) == 1, shown
    message = "send #1 of 8 int32 to rank 1" if group.rank == 0 else "recv #1 of 8 int32 from rank 0"
    assert shown.count(message) == 1, shown
    """
    code, out, errors = run(2, code, program=NAMES + CALLS)
    assert (code, out, errors) == (0, [], "")


@pytest.mark.usefixtures("switched_on")
def test_calls_of_hosts_are_ranges() -> None:
    """Also where calls fail; one more where a program waits for a call, none for a look whether it is done."""
    code = """
    shown = names()
    for words in ("all_reduce #", "send #", "probe #", "recv #", "put #"):
        assert any(name.startswith(words) for name in shown), (words, shown)
    assert shown.count(f"send #1 of 8 int32 to rank {other}") == 1, shown
    assert during and all(name.endswith(" of 8 int32, sum") for name in during), during
    """
    code, out, errors = run(2, code, program=NAMES + ON_HOSTS)
    assert (code, out, errors) == (0, [], "")


def test_without_the_switch_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_LIBNVTX", str(FAKE))
    assert run(2, "assert names() == []", program=NAMES + CALLS) == (0, [], "")


def test_without_a_library_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_NVTX", "1")
    monkeypatch.setenv("WAYWISER_LIBNVTX", "/nowhere/libnvtx.so")
    code, _, errors = run(2, "", program=CALLS)
    assert code == 0 and errors.count("WAYWISER_NVTX=1, but there is no NVTX") == 2 and "/nowhere/libnvtx.so" in errors


@pytest.mark.parametrize("name", ["WAYWISER_NVTX", "WAYWISER_TRUST_NETWORK"])
def test_a_switch_that_is_neither_on_nor_off_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, though it is asked for later, or never."""
    monkeypatch.setenv(name, "yes")
    with pytest.raises(ww.InputError, match=f"^{name}='yes': it is 0 or 1$"):
        ww.join()
