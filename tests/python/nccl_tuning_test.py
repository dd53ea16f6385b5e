"""`waywiser tune --nccl` with made-up times, and what `apply` makes of the rows."""

from __future__ import annotations

import ctypes
import json
import time
from pathlib import Path

import pytest
from doctor_in_network_cases import NOT_SERVED, PATH, PLUG_IN, SERVED
from doctor_machines import Files, build, nic
from made_up_nccl import NO_END, TUNER, ask, plan, program
from made_up_nccl_ranks import NAME, NEITHER, MadeUpRanks

from waywiser import _core
from waywiser.apply.job_libraries import find_job_libraries
from waywiser.apply.nccl_tuner_switch import with_tuner
from waywiser.apply.provable import why_not_tried
from waywiser.apply.setting import Settings, read_settings
from waywiser.bench.nccl_communicators import Communicators, plan_of
from waywiser.bench.team import Team
from waywiser.cli import run
from waywiser.look.nccl_library import Found
from waywiser.plan import read_plan
from waywiser.prove import nccl_benchmarks
from waywiser.prove.trial import benchmark_of
from waywiser.tune import nccl_tuning
from waywiser.tune.nccl_tuning import NcclTeams, Offers, finer_ways, first_ways, measured


def made_up_ways(offers: Offers) -> set[str]:
    """All that is timed, by whichever ranks."""
    tuned, switches = MadeUpRanks(), MadeUpRanks()
    measured(NcclTeams(MadeUpRanks(), tuned, switches), 2, offers, time.monotonic() + 600, lambda *told: None)
    assert {way.split("(")[0] for way in switches.ways} <= {"CollNetDirect", "CollNetChain"}, "only by those ranks"
    assert not any(way.startswith("CollNet") for way in tuned.ways)
    return tuned.ways | switches.ways


def test_the_tuner_understands_every_way_that_is_measured(tmp_path: Path) -> None:
    made, names = program(tmp_path), ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS")
    tuned = made_up_ways(Offers(nvls=True, chunks=True, collnet=True)) - {"default"}
    assert {"NVLS(protocol=Simple)", "Ring(chunk=65536,protocol=Simple)", "CollNetChain(protocol=Simple)"} <= tuned
    for way in tuned:
        text = plan_of(way, 2, "2.27.5")
        (tmp_path / "one.json").write_text(text)
        given = {"WAYWISER_NCCL_PLAN": f"{_core.plan_hash(text, 'NCCL')}:{tmp_path / 'one.json'}"}
        found = ask(made, 6, given, ["all_reduce 8 7 3"])
        algorithm = names.index(way.split("(")[0])
        assert found.said == [] and found.lines[1].startswith(f"0 {algorithm}:"), way


def test_what_this_nccl_does_not_offer_is_not_measured() -> None:
    assert "NVLS(protocol=Simple)" not in first_ways("all_reduce", 1 << 20, NEITHER)
    assert not any("NVLS" in way or "Tree" in way for way in first_ways("reduce", 8, Offers(True, True)))
    assert not any("(protocol=LL)" in way for way in first_ways("all_reduce", 8 << 20, NEITHER))
    assert not any("chunk" in way for way in finer_ways(["Ring(protocol=LL)"], 8 << 20, NEITHER))
    assert not any("chunk" in way for way in finer_ways(["Ring(protocol=LL)"], 8, Offers(False, True)))
    assert Offers.here({"NCCL_NVLS_ENABLE": "0"}, __file__) == Offers(False, True), "this file names version 6:"
    assert "ncclTunerPlugin_v6"
    assert Offers.here({}, str(TUNER)) == Offers(True, True)
    assert not any("CollNet" in way for way in made_up_ways(Offers(True, True)))
    assert not any("CollNet" in way for way in first_ways("all_gather", 8, Offers(True, True, True)))


@pytest.mark.parametrize(
    ("files", "commands", "environment", "adds"),
    [
        (nic() | PLUG_IN, SERVED, {}, True),
        (nic() | PLUG_IN, SERVED, {"NCCL_COLLNET_ENABLE": "0"}, False),
        (nic() | PLUG_IN, NOT_SERVED, {}, False),
        (nic() | PLUG_IN, {}, {}, False),
        (nic(), SERVED, {}, False),
        ({}, SERVED, {}, False),
    ],
)
def test_switches_that_add_are_a_candidate_where_all_is_there(
    tmp_path: Path, files: Files, commands: dict[str, str], environment: dict[str, str], adds: bool
) -> None:
    root = build(tmp_path, files, commands, PATH)
    assert Offers.here(environment, str(TUNER), root).collnet == adds


def test_apply_switches_on_what_a_row_of_collnet_needs(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(plan([("all_reduce", 0, NO_END, "CollNetDirect(protocol=Simple)")]))
    made = with_tuner(settings(), tmp_path)
    told = {name: value for name, value in made.environment().items() if "COLLNET" in name}
    assert told == {"NCCL_COLLNET_ENABLE": "1", "NCCL_COLLNET_NODE_THRESHOLD": "1"}
    assert {one.group for one in made.settings} == {"tuner"}, "proved together"
    assert [why_not_tried(one, "nccl", 2) for one in made.settings] == [""] * 4


def settings(version: str = "2.27.5 (/lib/libnccl.so.2)") -> Settings:
    return Settings(_core.discover().fingerprint, "here", versions={"nccl": version})


def test_apply_hands_out_the_tuner_with_the_hash(tmp_path: Path) -> None:
    file, text = tmp_path / "plan.json", plan([("all_reduce", 0, NO_END, "Ring(protocol=LL)")])
    assert with_tuner(settings(), tmp_path) == settings(), "nothing is tuned"
    file.write_text(text)
    made = with_tuner(settings(), tmp_path)
    variables = made.environment()
    assert variables == {
        "NCCL_TUNER_PLUGIN": str(TUNER), "WAYWISER_NCCL_PLAN": f"{_core.plan_hash(text, 'NCCL')}:{file}"
    }  # fmt: skip
    assert {one.group for one in made.settings} == {"tuner"}
    assert read_settings(json.loads(made.to_json()), "x") == made
    found = ask(program(tmp_path), 7, variables, ["all_reduce 8 7 3"])
    assert found.lines == ["waywiser init 0", "0 1:0=0 channels=0 chunk=0:1000"]


@pytest.mark.parametrize(
    ("version", "text", "why"),
    [
        (
            "2.28.3 (/lib)",
            plan([("all_reduce", 0, 8, "Ring(protocol=LL)")]),
            "rows for NCCL 2.27.5, and jobs use 2.28.3",
        ),
        ("2.27.5 (/lib)", plan([("all_reduce", 0, 8, "default")]), "NCCL's own choices are the fastest"),
        ("2.27.5 (/lib)", plan([("all_reduce", 0, 8, "default")], fingerprint="f"), "not measured on this machine"),
    ],
)
def test_apply_says_why_the_tuner_stays_off(tmp_path: Path, version: str, text: str, why: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    made = with_tuner(settings(version), tmp_path)
    assert made.settings == () and [why in one.why for one in made.left_out] == [True]


def test_rows_of_nccl_are_not_those_of_groups(tmp_path: Path) -> None:
    read = read_plan(plan([("all_reduce", 0, 8, "default")]).encode(), "x")
    assert read.of_groups() == [] and len(read.rows) == 1


class MadeUpLibrary:
    """Counts communicators. `ncclGetUniqueId`, `ncclCommInitRank` and `ncclCommDestroy` of NCCL."""

    def __init__(self) -> None:
        self.there: set[int] = set()
        self.ncclCommInitRank = lambda *words: self._init(*words)

    def ncclGetUniqueId(self, _made: object) -> int:
        return 0

    def _init(self, found: object, _size: int, _id: object, _rank: int) -> int:
        found._obj.value = max(self.there, default=0) + 1  # type: ignore[attr-defined]
        self.there.add(found._obj.value)  # type: ignore[attr-defined]
        return 0

    def ncclCommDestroy(self, one: ctypes.c_void_p) -> int:
        self.there.remove(int(one.value or 0))
        return 0


def test_each_way_has_a_communicator_with_a_plan_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_NCCL_PLAN", "before")
    library = MadeUpLibrary()
    made = Communicators(library, lambda result: None, 0, 2, tmp_path / "nccl.store")
    base = made.of("", "2.27.5")
    first = made.of("Ring(protocol=LL)", "2.27.5")
    assert base.value != first.value and made.of("Ring(protocol=LL)", "2.27.5") is first
    kept = json.loads((tmp_path / "nccl.plan-0.json").read_text())
    assert {row["ways"][0]["way"] for row in kept["rows"]} == {"Ring(protocol=LL)"} and len(kept["rows"]) == 5
    for count in range(1, 31):
        made.of(f"Ring(channels={count},protocol=LL)", "2.27.5")
    assert len(library.there) == 24 and made.of("", "2.27.5") is base


def test_the_verb_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if _core.discover().ids("gpu"):
        pytest.skip("this machine has GPUs")
    assert run(["tune", "--nccl", "--results", str(tmp_path)]) == 2
    assert "--nccl needs two GPUs" in capsys.readouterr().err
    assert run(["tune", "--nccl", "--fresh", "--results", str(tmp_path)]) == 2
    assert "--fresh is not for --nccl" in capsys.readouterr().err
    assert run(["tune", "-n", "2", "--results", str(tmp_path)]) == 2
    assert "--ranks is for --nccl" in capsys.readouterr().err


@pytest.mark.parametrize("adds", [False, True])
def test_who_is_started_with_which_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adds: bool) -> None:
    """NCCL alone, which writes its choices; a tuner; and a tuner where switches add."""
    given: dict[str, dict[str, str]] = {}

    def made(setup: object, name: str, environment: dict[str, str], **_: object) -> MadeUpRanks:
        given[name] = environment
        return MadeUpRanks()

    monkeypatch.setattr(nccl_tuning, "look_for_nccl", lambda: Found(2, "", ""))
    monkeypatch.setattr(nccl_tuning, "python_ranks", made)
    teams, started = nccl_tuning.start_teams(2, tmp_path, Offers(False, False, adds))
    assert len(started) == len(given) == 2 + adds and (teams.collnet is not None) == adds
    alone, tuned = given["nccl"], given["nccl-tuned"]
    assert (alone["NCCL_TUNER_PLUGIN"], tuned["NCCL_TUNER_PLUGIN"]) == ("none", str(TUNER))
    assert alone["NCCL_DEBUG_SUBSYS"] == "TUNING" and not any("NCCL_DEBUG" in name for name in tuned)
    assert Path(alone["NCCL_DEBUG_FILE"]).parent == teams.logs == tmp_path
    assert not adds or given["nccl-collnet"]["NCCL_COLLNET_ENABLE"] == "1"


def _start(ranks: int, folder: Path, offers: Offers) -> tuple[NcclTeams, list[Team]]:
    return NcclTeams(MadeUpRanks(), MadeUpRanks()), []


def test_the_verb_shows_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nccl_tuning, "start_teams", _start)
    monkeypatch.setattr(nccl_tuning, "find_libnccl", lambda: str(TUNER))
    assert run(["tune", "--nccl", "-n", "2", "--json", "--results", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["library"], told["ranks"], len(told["rows"])) == (NAME, 2, 8)
    assert set(told["silent_tuner"]) == set(nccl_tuning.COLLECTIVES)
    assert run(["tune", "--nccl", "-n", "2", "--results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "Tree(protocol=LL)" in out and "NCCL under a tuner that says nothing" in out and "reduce_scatter 1.00" in out


@pytest.mark.parametrize("tuner", [False, True])
def test_verify_times_what_a_tuner_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuner: bool) -> None:
    monkeypatch.setattr(nccl_benchmarks, "look_for_nccl", lambda: Found(2, "", ""))
    monkeypatch.setattr(nccl_benchmarks, "find_libnccl", lambda: str(TUNER))
    monkeypatch.setattr(nccl_benchmarks, "python_ranks", lambda setup, name, variables: MadeUpRanks())
    monkeypatch.setenv("PATH", str(tmp_path))  # no nccl-tests
    run_benchmark, _, files = benchmark_of("nccl", tmp_path, 2, True, find_job_libraries(), [], tuner)
    tests = {"ping-pong", "one way", "all-reduce"}
    more = {"all-gather", "reduce-scatter", "broadcast", "reduce"} if tuner else set()
    assert {test for test, _ in run_benchmark({})} == tests | more
    assert files == {"nccl": str(TUNER)}
