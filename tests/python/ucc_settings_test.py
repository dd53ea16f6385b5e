"""Variables of UCC are tried beside Open MPI's component `ucc`, under which it runs collectives. The tools are fake."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from job_libraries_test import open_mpi, program

from waywiser.apply.installed import installed_openmpi
from waywiser.apply.job_libraries import JobLibraries, find_job_libraries
from waywiser.apply.render import render
from waywiser.apply.setting import Setting, Settings
from waywiser.errors import InputError
from waywiser.prove.benchmarks import groups_of
from waywiser.prove.try_option import tried
from waywiser.run.clean_environment import clean_environment

SHARP = "OMPI_MCA_coll_ucc_enable=1 UCC_CL_BASIC_TLS=ucp,sharp"
UCC = "mca:coll:ucc:version:5.0.3; echo mca:coll:ucc:param:coll_ucc_enable:value:${OMPI_MCA_coll_ucc_enable:-0}"


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobLibraries:
    """An Open MPI with UCC, and a ucc_info."""
    mpirun = open_mpi(tmp_path, "5.0.3")
    program(tmp_path / "bin/ompi_info", f"echo path:pkglibdir:{tmp_path}/lib/openmpi; echo {UCC}")
    program(tmp_path / "bin/ucc_info", "echo '# UCC configuration'; echo UCC_CLS=basic; echo UCC_CL_BASIC_TLS=ucp")
    monkeypatch.setenv("PATH", os.pathsep.join((str(mpirun.parent), os.environ["PATH"])))
    return find_job_libraries(mpirun)


def test_they_are_tried_as_one_group(jobs: JobLibraries) -> None:
    found = tried(Settings("f", "m"), "openmpi", [SHARP], jobs)
    (group,) = groups_of(found.settings, "openmpi")
    assert {one.name: one.value for one in group} == {
        "OMPI_MCA_coll_ucc_enable": "1",
        "UCC_CL_BASIC_TLS": "ucp,sharp",
    }
    assert all(not one.measured and not one.proof for one in group)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("UCC_NO_SUCH=1", "does not know this variable"),
        ("OMPI_UCC_CL_BASIC_TLS=sharp", "with openmpi write OMPI_MCA_NAME=VALUE or UCC_NAME=VALUE"),
        ("LD_PRELOAD=x", "with openmpi write"),
    ],
)
def test_others_are_refused(text: str, why: str, jobs: JobLibraries) -> None:
    with pytest.raises(InputError, match=why):
        tried(Settings("f", "m"), "openmpi", [text], jobs)


def test_an_open_mpi_without_ucc_knows_none(jobs: JobLibraries, tmp_path: Path) -> None:
    assert "UCC_CLS" in (installed_openmpi(jobs).known or {})
    program(tmp_path / "bin/ompi_info", "echo mca:coll:tuned:version:5.0.3")
    assert not [name for name in installed_openmpi(jobs).known or {} if name.startswith("UCC_")]
    program(tmp_path / "bin/ompi_info", f"echo {UCC}")
    (tmp_path / "bin/ucc_info").unlink()
    assert not [name for name in installed_openmpi(jobs).known or {} if name.startswith("UCC_")]


def test_the_file_of_open_mpi_has_none() -> None:
    one = Setting("openmpi", "UCC_CL_BASIC_TLS", "ucp,sharp", "ucp", "tried by hand", "g", proof="2 x the speed")
    settings = Settings("f", "m", settings=(replace(one, name="OMPI_MCA_coll_ucc_enable", value="1"), one))
    assert "export UCC_CL_BASIC_TLS=ucp,sharp" in render(settings, "shell", ("openmpi",))
    file = render(settings, "mca-params.conf", ("openmpi",))
    assert "coll_ucc_enable = 1" in file and "\nUCC_" not in file
    assert "# UCC_CL_BASIC_TLS=ucp,sharp: only in the environment" in file


def test_a_clean_environment_has_none() -> None:
    assert clean_environment({"UCC_CL_BASIC_TLS": "ucp,sharp", "HOME": "/h"}) == {"HOME": "/h"}
