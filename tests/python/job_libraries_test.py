"""Verdicts name the MPI and UCX that jobs use; unproved settings are not handed out as proved."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import made_up
import pytest

from waywiser import _core, cli
from waywiser.apply import job_libraries
from waywiser.apply.facts import Machine
from waywiser.apply.installed import Installed
from waywiser.apply.job_libraries import JobLibraries, JobMpi, find_job_libraries, find_mpi
from waywiser.apply.propose import settings_for
from waywiser.apply.render import render
from waywiser.apply.setting import LeftOut, Setting, Settings, read_settings
from waywiser.apply.store import keep, kept
from waywiser.errors import InputError
from waywiser.look.finding import Unknown
from waywiser.prove import benchmarks
from waywiser.topology.load import read_machine

PML = Setting("openmpi", "OMPI_MCA_pml", "ucx", "", "measured", "pml ucx")


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def open_mpi(prefix: Path, version: str, libucp: str = "") -> Path:
    """A tree that looks like an Open MPI whose messaging layer links `libucp`."""
    program(prefix / "bin/ompi_info", f"echo path:pkglibdir:{prefix}/lib/openmpi; echo mca:pml:ucx:version:{version}")
    (prefix / "lib/openmpi").mkdir(parents=True)
    (prefix / "lib/libmpi.so.40").touch()
    (prefix / "lib/openmpi/mca_pml_ucx.so").write_text(libucp)
    return program(prefix / "bin/mpirun", f'echo "mpirun (Open MPI) {version}"')


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """One Open MPI in PATH, and another beside this interpreter."""
    jobs, tool = open_mpi(tmp_path / "jobs", "4.1.4", "/jobs/libucp.so.0"), open_mpi(tmp_path / "tool", "5.0.11")
    # Replaces ldd: made-up libraries name their dependencies.
    program(tmp_path / "path/ldd", 'echo "  libucp.so.0 => $(cat "$1") (0x0)"')
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path / "path"), str(jobs.parent), os.environ["PATH"])))
    monkeypatch.setattr(sys, "executable", str(tool.with_name("python")))
    return jobs, tool


def test_the_mpi_in_path_comes_first(two: tuple[Path, Path]) -> None:
    jobs, tool = two
    found = find_mpi(None)
    assert (found.mpirun, found.version) == (str(jobs), "4.1.4")
    assert found.libmpi == str(jobs.parents[1] / "lib/libmpi.so.40") and found.libucp == "/jobs/libucp.so.0"
    assert found.text == f"4.1.4 ({jobs}, {found.libmpi})"
    assert find_mpi(tool).version == "5.0.11"
    libraries = find_job_libraries()
    assert libraries.libucp == "/jobs/libucp.so.0" and libraries.whose == str(jobs)
    assert "mca:pml:ucx:version:4.1.4" in libraries.root().run("ompi_info", "--parsable", "--all")
    assert "version:5.0.11" in find_job_libraries(tool).root().run("ompi_info", "--parsable", "--all")
    with pytest.raises(Unknown, match=r"needs a ucx_info that uses /jobs/libucp.so.0, the UCX of .*/jobs/bin/mpirun"):
        libraries.ucx_program("ucx_info")


def test_the_mpi_beside_the_tool_is_the_last_resort(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = find_mpi(None)
    assert found.version == "5.0.11" and found.own and "beside this program: no mpirun is in PATH" in found.text


def test_debians_own_name_of_mpirun(two: tuple[Path, Path]) -> None:
    named = program(two[0].with_name("mpirun.openmpi"), 'echo "mpirun.openmpi (OpenRTE) 4.1.4"')
    assert find_mpi(named).version == "4.1.4"


def test_another_mpi_is_named(two: tuple[Path, Path], tmp_path: Path) -> None:
    other = program(tmp_path / "mpich/bin/mpirun", "echo HYDRA build details: Version: 4.1")
    with pytest.raises(InputError, match=r"mpich/bin/mpirun is not Open MPI's \(HYDRA build details: Version: 4.1\)"):
        find_mpi(other)
    with pytest.raises(InputError, match=r"--mpirun /nowhere: is not a program"):
        find_mpi(Path("/nowhere"))


def test_ranks_that_open_another_libmpi_give_no_verdict(tmp_path: Path) -> None:
    answer = json.dumps({"library": "x", "libmpi": "/other/libmpi.so.40", "tests": {"ping-pong": {"24": 1e-6}}})
    mpirun = program(tmp_path / "mpirun", f"echo '{answer}'")
    mpi = JobMpi(str(mpirun), "4.1.4", "/jobs/libmpi.so.40", "")
    if benchmarks.importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    with pytest.raises(InputError, match=r"mpi4py opens /other/libmpi.so.40, not /jobs/libmpi.so.40 of "):
        benchmarks.openmpi(mpi, 2, (24,))({})


def test_apply_says_what_it_looked_at(
    two: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs, tool = two
    value = made_up.profile(0) | {"fingerprint": _core.discover().fingerprint}
    (tmp_path / "profile.json").write_text(json.dumps(value))
    command = ["apply", "--results", str(tmp_path), "--for", "openmpi", "--json"]
    assert cli.run(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["versions"]["openmpi"].startswith(f"4.1.4 ({jobs}, ")
    assert told["libraries"] == {"openmpi": str(jobs.parents[1] / "lib/libmpi.so.40")}
    assert [one["name"] for one in told["settings"]] == []  # the tree knows no variable
    assert cli.run([*command, "--mpirun", str(tool)]) == 0
    assert json.loads(capsys.readouterr().out)["versions"]["openmpi"].startswith(f"5.0.11 ({tool}, ")


def test_a_verdict_is_about_one_library(
    two: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, tool = two
    fingerprint = _core.discover().fingerprint
    settings = Settings(fingerprint, "node", settings=(PML,), libraries={"openmpi": find_mpi(None).libmpi})
    keep(tmp_path, settings)
    command = ["verify", "--with", "openmpi", "--results", str(tmp_path), "--mpirun"]
    assert cli.run([*command, str(tool)]) == 2
    said = capsys.readouterr().err
    assert "were checked with" in said and "run 'waywiser apply' with the same --mpirun first" in said
    times = {("ping-pong", size): 1e-6 for size in (24, 1536)}
    monkeypatch.setattr(benchmarks, "openmpi", lambda mpi, *_, **__: lambda variables: times)
    assert cli.run([*command, str(jobs)]) == 0
    out, said = capsys.readouterr()
    assert "2 ranks, openmpi 4.1.4, against default" in out and f"timed: openmpi 4.1.4 ({jobs}, " in said
    evidence = json.loads((tmp_path / "evidence" / f"{fingerprint}-openmpi.json").read_text())
    assert evidence["versions"]["openmpi"].startswith(f"4.1.4 ({jobs}, ")
    assert evidence["libraries"]["openmpi"] == find_mpi(None).libmpi
    after = kept(tmp_path, fingerprint)
    assert after and not after.settings and after.left_out[0].name == "OMPI_MCA_pml"  # refuted: not handed out


def test_loopback_says_nothing_about_a_network() -> None:
    known = {"UCX_TCP_MAX_BW": "2200.00MBps", "UCX_POSIX_BW": "15360.00MBps"}
    here = Machine(read_machine("dgx-1v"), made_up.read(made_up.profile(2)))
    found = settings_for(here, ("ucx",), {"ucx": Installed("1.0", known)}, lambda *_: "")
    assert "UCX_TCP_MAX_BW" not in found.environment()
    why = next(one.why for one in found.left_out if one.name == "UCX_TCP_MAX_BW")
    assert "of the loopback device, not of a network" in why


def test_env_hands_out_what_is_proved_and_marks_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    won = Setting("ucx", "UCX_POSIX_BW", "9000MBs", "", "measured", "posix", proof="1.20 x the speed")
    rails = Setting("ucx", "UCX_MAX_RNDV_RAILS", "1", "2", "one NIC near each GPU", "rails", False)
    lost = LeftOut("ucx", "UCX_TLS", "^cma", "does not win beyond the noise")
    versions = {"ucx": "1.13.1 (/lib/libucp.so.0, of /usr/bin/mpirun)", "openmpi": "4.1.4 (/usr/bin/mpirun)"}
    settings = Settings("abcd1234", "node", "", versions, (won, rails, PML), (lost,))
    keep(tmp_path, settings)
    command = ["env", "--results", str(tmp_path), "--fingerprint", "abcd1234"]
    assert cli.run(command) == 0
    out = capsys.readouterr().out
    assert "1 of 2 settings are not proved; --proved leaves them out" in out
    assert "with ucx 1.13.1 (/lib/libucp.so.0, of /usr/bin/mpirun)" in out
    assert "# not exported: UCX_MAX_RNDV_RAILS=1: a prediction" in out and "UCX_MAX_RNDV_RAILS=1\n" not in out
    assert "not yet proved: waywiser verify --with openmpi" in out
    assert "UCX_TLS" not in out
    assert cli.run([*command, "--proved"]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("export")] == ["export UCX_POSIX_BW=9000MBs"]
    assert "each setting won against the default" in out
    assert "OMPI" not in render(settings.only_proved(), "slurm", ("ucx", "openmpi"))


def test_paths_are_kept_with_the_settings() -> None:
    settings = Settings("abcd1234", "node", settings=(PML,), libraries={"openmpi": "/lib/libmpi.so.40"})
    assert read_settings(json.loads(settings.to_json()), "x") == settings
    with pytest.raises(InputError, match="libraries: must be texts"):
        read_settings({**json.loads(settings.to_json()), "libraries": {"ucx": 1}}, "x")


def test_ucx_of_jobs_is_asked_by_a_program_that_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(
        tmp_path / "path/ldd", 'case "$LD_LIBRARY_PATH" in *jobs*) echo "libucp.so.0 => /jobs/lib/libucp.so.0";; esac'
    )
    info = program(tmp_path / "path/ucx_info", "echo")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH']}")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    jobs = JobLibraries(None, "no MPI", "/jobs/lib/libucp.so.0", "somebody")
    assert jobs.ucx_program("ucx_info") == (str(info), {"LD_LIBRARY_PATH": "/jobs/lib"})
    assert shutil.which("ucx_info") == str(info) and job_libraries.linked(str(info), "libucp", os.environ) == ""
