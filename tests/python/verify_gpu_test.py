"""`verify --with nccl` and `--with ucx` without a GPU: with a stand-in for libnccl and the driver."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from waywiser import _core, cli
from waywiser.apply.job_libraries import find_job_libraries
from waywiser.apply.setting import Setting, Settings
from waywiser.apply.store import keep, kept
from waywiser.errors import InputError
from waywiser.look.finding import Unknown
from waywiser.prove import benchmarks, nccl_benchmarks, ucx_benchmark
from waywiser.run.clean_environment import clean_environment

pytestmark = pytest.mark.slow
FAKE = Path(__file__).with_name("fake_nccl.c")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    file = tmp_path_factory.mktemp("fake") / "libnccl.so.2"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(FAKE), "-o", str(file)], check=True)
    return file


@pytest.fixture
def four_gpus(library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAYWISER_LIBCUDA", str(library))
    monkeypatch.setenv("WAYWISER_LIBNCCL", str(library))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{library.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where its processes meet


def test_libnccl_is_timed_by_a_process_for_each_gpu_and_its_data_is_checked(four_gpus: None) -> None:
    run, what, file = nccl_benchmarks.nccl(2, (24, 1536), clean_environment(os.environ))
    assert what.startswith(file) and file == os.path.realpath(os.environ["WAYWISER_LIBNCCL"])
    times = run({})
    assert set(times) == {(test, size) for test in ("ping-pong", "one way", "all-reduce") for size in (24, 1536)}
    assert all(1e-9 < seconds < 10 for seconds in times.values())
    with pytest.raises(InputError, match="what arrived is not what was sent"):
        run({"NCCL_FAKE_DAMAGE": "1"})


def test_what_nccl_lacks_is_said(four_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="5 ranks need a GPU each, and there are 4"):
        nccl_benchmarks.nccl(5, (24,))
    monkeypatch.setenv("WAYWISER_LIBNCCL", "/nowhere/libnccl.so.2")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"no nccl-tests in PATH, no PyTorch, and /nowhere/libnccl\.so\.2"):
        nccl_benchmarks.nccl(2, (24,))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert nccl_benchmarks.nccl(2, (24,))[1].startswith("torch.distributed")
    monkeypatch.setenv("WAYWISER_LIBCUDA", "/nowhere/libcuda.so.1")
    with pytest.raises(InputError, match="no NVIDIA driver: /nowhere/libcuda"):
        nccl_benchmarks.nccl(2, (24,))


def test_settings_of_ones_own_are_tried_and_kept_when_they_win(
    four_gpus: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(variables: Mapping[str, str]) -> benchmarks.Times:
        return {("all-reduce", size): 1e-6 * size * (0.5 if variables else 1.0) for size in (24, 1536, 98304)}

    monkeypatch.setattr(nccl_benchmarks, "nccl", lambda *_: (run, "made up", ""))
    results = tmp_path / "results"
    fingerprint = _core.discover().fingerprint
    far = Setting("nccl", "NCCL_IB_HCA", "=mlx5_0", "", "near", "NCCL_IB_HCA", False)
    keep(results, Settings(fingerprint, "node", settings=(far,)))
    command = ["verify", "--with", "nccl", "--quick", "--results", str(results)]
    assert cli.run([*command, "--try", "NCCL_FAKE_DAMAGE=1", "--json"]) == 0
    out, said = capsys.readouterr()
    value = json.loads(out)
    assert value["benchmark"] == "made up" and value["steps"][0]["kept"] == "NCCL_FAKE_DAMAGE=1"
    assert "NCCL_IB_HCA is not tried: no benchmark between nodes exercises it" in said
    found = kept(results, fingerprint)
    assert found and not found.proved and [one.proof != "" for one in found.settings] == [False, True]
    command[-1] = str(tmp_path / "new")  # settings of --try need no other settings
    assert cli.run([*command, "--try", "NCCL_FAKE_DAMAGE=1"]) == 0
    assert "kept     [1] NCCL_FAKE_DAMAGE=1: 2.00 x the speed" in capsys.readouterr().out
    for text, why in (("NCCL_NO_SUCH=1", "does not know"), ("UCX_TLS=tcp", "NCCL_NAME=VALUE"), (" ", "NAME=VALUE")):
        assert cli.run([*command, "--try", text]) == 2
        assert why in capsys.readouterr().err


def test_ucx_is_timed_by_its_own_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = find_job_libraries()
    try:
        jobs.ucx_program("ucx_perftest")
    except Unknown as error:
        pytest.skip(str(error))
    run, what = ucx_benchmark.ucx(jobs, 2, (24, 12288), clean_environment(os.environ))
    said = capsys.readouterr().err
    if "times host memory only" not in said:
        pytest.skip("this UCX moves GPU memory here")
    assert "ucx_perftest of UCX" in what
    times = run({"UCX_TLS": "posix,cma,self"})
    assert set(times) == {(test, size) for test in ("ping-pong", "one way") for size in (24, 12288)}
    assert all(1e-9 < seconds < 1 for seconds in times.values())
    with pytest.raises(InputError, match="ucx_perftest printed no figures: no usable transports"):
        run({"UCX_TLS": "nothing"})
