"""The tuner inside NCCL, without a GPU: all versions of its interface with made-up tables of costs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from made_up_nccl import ENVIRONMENT, NO_END, TUNER, VERSIONS, Row, ask, given, plan, program

ROWS: list[Row] = [
    ("all_reduce", 0, 65535, "Tree(protocol=LL)"),
    ("all_reduce", 65536, 1048575, "default"),
    ("all_reduce", 1048576, NO_END, "Ring(channels=8,chunk=524288,protocol=Simple)"),
    ("all_gather", 0, 1023, "Ring(protocol=LL128)"),
    ("reduce_scatter", 0, NO_END, "NVLS(channels=4,protocol=Simple)"),
]
UNTOUCHED = "0 channels=0"
EVERY = [f"{operation} 8 7 3" for operation in ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("program"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_follows_the_plan(made: Path, tmp_path: Path, version: int) -> None:
    found = ask(
        made, version, given(tmp_path / "plan.json", plan(ROWS)),
        ["all_reduce 8 7 3", "all_reduce 65535 7 3", "all_reduce 65536 7 3", "all_reduce 1048576 7 3",
         f"all_reduce {5 << 32} 7 3", "all_gather 2046 7 3", "all_gather 2048 7 3", "reduce_scatter 64 7 3",
         "broadcast 8 7 3", "send_recv 8 7 3", "other 8 7 3"],
    )  # fmt: skip
    unchanged = " chunk=0:1000" if version >= 6 else ""
    large = "0 1:2=0 channels=8" + (" chunk=0:524288" if version >= 6 else "")
    tree = f"0 0:0=0 channels=0{unchanged}"
    assert found.lines == [
        "waywiser init 0", tree, tree, UNTOUCHED, large, large, f"0 1:1=0 channels=0{unchanged}", UNTOUCHED,
        f"0 4:2=0 channels=4{unchanged}", UNTOUCHED, UNTOUCHED, UNTOUCHED,
    ]  # fmt: skip
    assert found.code == 0 and found.said == []


@pytest.mark.parametrize("version", VERSIONS)
def test_what_cannot_run_is_never_written(made: Path, tmp_path: Path, version: int) -> None:
    asked = ["all_reduce 8 7 3 0:0", "all_reduce 8 7 3 0:1", "reduce_scatter 8 4 3", "all_reduce 1048576 7 2"]
    found = ask(made, version, given(tmp_path / "plan.json", plan(ROWS)), asked)
    unchanged = " chunk=0:1000" if version >= 6 else ""
    assert found.lines[1:] == [UNTOUCHED, f"0 0:0=0 channels=0{unchanged}", UNTOUCHED, UNTOUCHED]


@pytest.mark.parametrize("name", ["NCCL_ALGO", "NCCL_PROTO"])
def test_what_the_user_has_set_wins(made: Path, tmp_path: Path, name: str) -> None:
    found = ask(made, 5, given(tmp_path / "plan.json", plan(ROWS)) | {name: "Ring"}, EVERY)
    assert found.lines == ["waywiser init 0", *[UNTOUCHED] * 5]
    assert found.said == [f"waywiser: NCCL: it decides itself: {name} is set and wins"]


def test_channels_of_the_user_stay(made: Path, tmp_path: Path) -> None:
    found = ask(made, 5, given(tmp_path / "plan.json", plan(ROWS)) | {"NCCL_MAX_CTAS": "4"}, ["all_reduce 1048576 7 3"])
    assert found.lines[1:] == ["0 1:2=0 channels=0"]


def silent(made: Path, variables: dict[str, str], ranks: int = 2, nodes: int = 1) -> str:
    """What is said, once, by a plug-in that starts and touches nothing."""
    for version in VERSIONS:
        found = ask(made, version, variables, EVERY, ranks, nodes)
        assert (found.code, found.lines) == (0, ["waywiser init 0", *[UNTOUCHED] * 5])
        assert len(found.said) == 1
    return found.said[0]


def test_a_plan_of_something_else_leaves_all_as_it_is(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    good = given(file, plan(ROWS))
    assert "no rows for 3 ranks of NCCL 2.27.5" in silent(made, good, ranks=3)
    assert "for one node, and these are 2" in silent(made, good, nodes=2)
    assert "no rows for 2 ranks of NCCL 2.28.3" in silent(made, good | {"MADE_UP_NCCL_VERSION": "22803"})
    assert "its version cannot be asked" in silent(made, good | {"MADE_UP_NCCL_VERSION": "0"})
    assert f"{file} is for machines f00, and this is" in silent(made, given(file, plan(ROWS, fingerprint="f00")))
    assert "comes from a simulation" in silent(made, given(file, plan(ROWS, simulated=True)))
    for way in ("Ring", "Ring(protocol=LL256)", "Circle(protocol=LL)", "Ring(channels=65,protocol=LL)",
                "Ring(protocol=LL,size=1)", "Ring(channels=8)", "Tree(channels=0,protocol=LL)"):  # fmt: skip
        told = silent(made, given(file, plan([("all_reduce", 0, 8, way)])))
        assert "a way that is not known, " in told


def refused(made: Path, variables: dict[str, str]) -> str:
    """What is said, in one line, by a plug-in that does not start."""
    for version in VERSIONS:
        found = ask(made, version, variables, EVERY)
        assert (found.code, found.lines) == (0, ["waywiser init 5"])
        assert len(found.said) == 1 and found.said[0].startswith("waywiser: NCCL: this rank does not start: ")
    return found.said[0]


def test_a_rank_without_the_plan_of_the_others_does_not_start(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    good = given(file, plan(ROWS))
    assert ask(made, 6, good).lines == ["waywiser init 0"]
    assert "was given no hash of a plan" in refused(made, {})
    for wrong in (str(file), f":{file}", "abc:"):
        assert "was given no hash of a plan" in refused(made, {"WAYWISER_NCCL_PLAN": wrong})
    other = given(tmp_path / "other.json", plan(ROWS[:1]))["WAYWISER_NCCL_PLAN"].split(":")[0]
    told = refused(made, {"WAYWISER_NCCL_PLAN": f"{other}:{file}"})
    assert f"and the job was given {other}; `waywiser apply`" in told
    file.write_text(file.read_text()[:-20])
    assert str(file) in refused(made, good)
    file.unlink()
    assert str(file) in refused(made, good)


def test_rows_of_others_do_not_change_the_hash(made: Path, tmp_path: Path) -> None:
    """Programs write what they find into the plan while others start."""
    file = tmp_path / "plan.json"
    good = given(file, plan(ROWS))
    value = json.loads(file.read_text())
    value["rows"].append(value["rows"][0] | {"partner": "host:7117 gpu0", "operation": "input"})
    file.write_text(json.dumps(value | {"machine": "renamed"}))
    assert ask(made, 7, good).lines == ["waywiser init 0"]


def test_a_communicator_of_one_rank_has_nothing_to_choose(made: Path, tmp_path: Path) -> None:
    found = ask(made, 5, given(tmp_path / "plan.json", plan(ROWS)), EVERY, ranks=1)
    assert (found.lines, found.said) == (["waywiser init 0", *[UNTOUCHED] * 5], [])


def exported(library: Path) -> list[str]:
    told = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return sorted(line.split()[-1] for line in told.stdout.splitlines())


def test_only_the_interfaces_are_exported() -> None:
    assert exported(TUNER) == [f"ncclTunerPlugin_v{version}" for version in VERSIONS]
    assert exported(ENVIRONMENT) == ["ncclEnvPlugin_v1", "ncclEnvPlugin_v2"]
