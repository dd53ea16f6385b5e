"""Variables for a node: known to the libraries that take them, as are their values, and in the table of the how-to."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from made_up_driver import cuda_driver, wheel_ucx
from node_profiles import STUDIED, machine_of, profile_of, values

from waywiser.apply import ucx
from waywiser.apply.facts import Machine
from waywiser.apply.node_switches import PURPOSES
from waywiser.apply.node_table import node_markdown
from waywiser.apply.propose import settings_for
from waywiser.look.ucx import rates
from waywiser.topology import load_topology

pytestmark = pytest.mark.slow
# All variables of a machine take half a minute.
LANES = ["hse-a", *(pytest.param(one, marks=pytest.mark.long) for one in ("hse-c", "hse-e", "dgx-a100"))]
LISTS = Path(__file__).parents[1] / "library_names"


@pytest.fixture(scope="module")
def ucx_of_the_wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, str]], str]:
    """Its ucx_info -c under given variables, with the module of CUDA."""
    program, libraries = wheel_ucx()
    driver = cuda_driver(tmp_path_factory.mktemp("cuda"), libraries)

    def told(variables: dict[str, str]) -> str:
        environment = {"LD_LIBRARY_PATH": f"{libraries}:{driver}", **variables}
        done = subprocess.run([program, "-c"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=60)  # fmt: skip
        assert done.returncode == 0, done.stdout[-300:]
        return done.stdout

    return told


def recorded_names(name: str) -> set[str]:
    """A list of variables that scripts/library_names has made from the library itself."""
    first, *names = (LISTS / f"{name}.txt").read_text().splitlines()
    assert re.search(r" \d+\.\d+\.\d+, .+; 20\d\d-\d\d-\d\d$", first), first
    return set(names)


@cache
def emitted(machine: str) -> dict[str, str]:
    """Every variable for a machine, for any purpose."""
    profiles = (profile_of(machine), profile_of(machine, mixed=True) if machine in STUDIED else None)
    found: dict[str, str] = {}
    for purpose in PURPOSES:
        for profile in filter(None, profiles):
            found |= values(settings_for(Machine(load_topology(machine), profile, purpose), unchecked=True))
    return found


@pytest.mark.parametrize("machine", LANES)
def test_every_variable_is_known_to_its_library(machine: str) -> None:
    known = {"UCX_GDR_COPY_BW"}  # of a module that no package has; named in UCX's gdr_copy_iface.c
    for name in ("ucx-debian", "ucx-wheel", "mpich", "nccl"):
        known |= recorded_names(name)
    found = {name for name in emitted(machine) if not name.startswith("OMPI_MCA_")}
    libraries = {name.partition("_")[0] for name in found}
    assert libraries >= {"UCX", "MPIR"} and ("NCCL" in libraries) == (machine != "dgx-a100")
    assert found <= known, found - known


@pytest.mark.parametrize("machine", LANES)
def test_ucx_accepts_every_value(machine: str, ucx_of_the_wheel: Callable[[dict[str, str]], str]) -> None:
    """A list that lacks a word, or has another one, is an error for UCX."""
    wanted = {name: value for name, value in emitted(machine).items() if name.startswith("UCX_")}
    told = ucx_of_the_wheel(wanted)
    assert not re.search(r"UCX +(ERROR|WARN) ", told), re.findall(r"UCX +(?:ERROR|WARN) .*", told)
    shown = dict(re.findall(r"^(UCX_\w+)=(.*)$", told, re.MULTILINE))
    assert wanted.keys() - shown.keys() <= {"UCX_GDR_COPY_BW"}
    copy, before = (rates(one) for one in (shown["UCX_CUDA_COPY_BW"], ucx.USUAL["UCX_CUDA_COPY_BW"]))
    assert copy == {**rates(wanted["UCX_CUDA_COPY_BW"])} and copy.keys() == before.keys()
    words = [part.partition(":")[0] for part in wanted["UCX_GDR_COPY_BW"].split(",")]
    assert words == ["get_dedicated", "get_shared", "put_dedicated", "put_shared"]  # all of gdr_copy_iface.c


def test_the_defaults_that_are_assumed_elsewhere_are_those_of_the_wheel(
    ucx_of_the_wheel: Callable[[dict[str, str]], str],
) -> None:
    shown = dict(re.findall(r"^(UCX_\w+)=(.*)$", ucx_of_the_wheel({}), re.MULTILINE))
    if f"libucx-cu13 {importlib.metadata.version('libucx-cu13')}," in (LISTS / "ucx-wheel.txt").read_text():
        assert recorded_names("ucx-wheel") == shown.keys()
    for name, value in ucx.USUAL.items():
        if name in shown and name != "UCX_DISTANCE_BW":  # which UCX's own ucx.conf sets by the model of the CPU
            assert rates(shown[name]) == rates(value) and (rates(value) or shown[name] == value), name


@pytest.mark.long
def test_the_table_of_the_how_to() -> None:
    text = (Path(__file__).parents[2] / "docs" / "howto-cluster.md").read_text()
    machines = [profile_of(machine) for machine in (*STUDIED, "dgx-a100")]
    mixed = [profile_of(machine, mixed=True) for machine in STUDIED]
    for profiles in (machines, mixed):
        for line in node_markdown(profiles).splitlines():
            assert line in text, line
    for machine in (*STUDIED, "dgx-a100"):
        for name, value in values(settings_for(machine_of(machine), unchecked=True)).items():
            if name != "UCX_CUDA_IPC_BW":  # between GPUs of one node, which these profiles leave out
                row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
                assert f"`{value}`" in row, (machine, name)
