"""The collectives' part of tune: the timed algorithms, the entries in the profile, the output of explain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_up import write

from waywiser.bench.team import NotOffered
from waywiser.cli import run
from waywiser.results import Results
from waywiser.tune import ways
from waywiser.tune.collective_tuning import _missing, collectives_into

pytestmark = pytest.mark.slow
SECONDS = {"LL": 2e-6, "host": 50e-6}


class MadeUpTeam:
    """Two ranks that answer at once; NCCL they have not."""

    version = ""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.modes: set[tuple[str, str]] = set()

    def slice(self, request: str, patience: float) -> list[list[float]]:
        way = request.split()[-1]
        self.asked.append(way)
        self.modes.add((way, request.split()[9]))
        if way == "nccl":
            raise NotOffered("no NCCL here")
        samples = int(request.split()[6])
        return [[SECONDS.get(way, 9e-6)] * samples, [SECONDS.get(way, 9e-6) / 2] * samples]

    def close(self) -> None: ...


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> MadeUpTeam:
    made = MadeUpTeam()
    monkeypatch.setattr(ways, "our_team", lambda setup: made)
    return made


def test_every_way_is_timed_by_the_slowest_rank(team: MadeUpTeam, tmp_path: Path) -> None:
    series = ways.measured(ways.Ranks(4, "gpu", "cuda"), tmp_path, 60.0, lambda *told: None)
    found = next(one for one in series if one["operation"] == "all_reduce" and one["way"] == "LL")
    assert (found["memory"], found["ranks"]) == ("gpu", 4)
    assert [point["bytes"] for point in found["points"]][:2] == [8, 1024]
    assert found["points"][0]["seconds"] == pytest.approx(2e-6)
    assert {one["operation"] for one in series} == set(ways.COLLECTIVES)
    assert not any(one["way"] == "nccl" for one in series)
    assert {one["operation"] for one in series if "two_shot" in one["way"]} == {"all_reduce", "broadcast"}
    copied = {one["operation"]: one["points"][0]["bytes"] for one in series if one["way"] == "copy_engine"}
    assert set(copied.values()) == {64 << 20} and "reduce" not in copied
    assert not any("two_shot_LL128" in one["way"] for one in series if one["operation"] == "broadcast")


def test_what_gpus_carry_out_is_timed_in_graphs(team: MadeUpTeam, tmp_path: Path) -> None:
    ways.measured(ways.Ranks(2, "gpu", "cuda"), tmp_path, 60.0, lambda *told: None)
    assert {mode for way, mode in team.modes if way != "host"} == {"graph"}
    assert {mode for way, mode in team.modes if way == "host"} == {"blocking"}
    team.modes.clear()
    ways.measured(ways.Ranks(2, "host", "host"), tmp_path, 60.0, lambda *told: None)
    assert {mode for _, mode in team.modes} == {"blocking"}


def test_messages_on_streams_have_series_of_one_way(team: MadeUpTeam, tmp_path: Path) -> None:
    two = ways.ranks_to_time("cuda", 4)[1]
    series = [one for one in ways.measured(two, tmp_path, 60.0, lambda *told: None) if one["operation"] == "message"]
    found = {one["way"]: [point["bytes"] for point in one["points"]] for one in series}
    assert {"LL", "LL128", "bulk", "LL128(blocks=16)", "bulk(blocks=32)"} <= set(found)
    assert found["LL"][-1] == 1 << 20
    assert found["LL128"][-1] == 64 << 20
    assert found["bulk"][0] == 8 << 10
    assert found["LL(blocks=16)"][0] == 64 << 10
    point = next(one for one in series if one["way"] == "LL")["points"][0]
    assert point["seconds"] == pytest.approx(1e-6), "half of a ping-pong"
    assert all((one["ranks"], one["memory"]) == (2, "gpu") for one in series)


def test_prepared_exchanges_have_series_of_their_own(team: MadeUpTeam, tmp_path: Path) -> None:
    two = ways.ranks_to_time("cuda", 4)[1]
    timed = ways.measured(two, tmp_path, 60.0, lambda *told: None)
    series = [one for one in timed if one["operation"] == "prepared_exchange"]
    found = {one["way"]: [point["bytes"] for point in one["points"]] for one in series}
    assert {"LL", "LL128", "bulk", "direct", "LL(piece=1K)", "bulk(blocks=32)", "direct(piece=64K)"} <= set(found)
    assert (found["LL"][0], found["LL"][-1]) == (8, 1 << 20)
    assert (found["direct"][0], found["bulk"][-1]) == (8, 16 << 20)
    assert found["direct(blocks=32)"][0] == 64 << 10


def test_explain_shows_what_prepared_exchanges_were_timed_by(
    team: MadeUpTeam, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path) / "profile.json"
    timed = ways.measured(ways.Ranks(2, "gpu", "cuda", ("prepared_exchange",)), tmp_path, 60.0, lambda *told: None)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"unavailable": [], "collectives": timed}))
    assert run(["explain", "prepared_exchange", "gpu", "64K", "--results", str(file.parent)]) == 0
    told = capsys.readouterr().out
    assert "* LL " in told
    assert "direct (piece=64K)" in told


def test_explain_shows_what_messages_of_kernels_were_timed_by(
    team: MadeUpTeam, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path) / "profile.json"
    timed = ways.measured(ways.Ranks(2, "gpu", "cuda", ("put_message",)), tmp_path, 60.0, lambda *told: None)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"unavailable": [], "collectives": timed}))
    assert run(["explain", "put_message", "gpu", "4K", "--results", str(file.parent)]) == 0
    told = capsys.readouterr().out
    assert "* LL " in told and "stores" in told and "bulk" in told


def test_virtual_gpus_time_messages_and_prepared_exchanges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "_VIRTUAL_SIZES", (8,))
    monkeypatch.setattr(ways, "_ROUNDS", 2)
    ranks = ways.ranks_to_time("virtual_gpu", 2)[-1]
    assert ranks.operations == ("message", "prepared_exchange", "put_message")
    series = ways.measured(ranks, tmp_path, 600.0, lambda *told: None)
    assert {one["operation"] for one in series} == {"message", "prepared_exchange", "put_message"}
    ways_timed = {(one["operation"], one["way"]) for one in series}
    assert {("message", "LL128"), ("prepared_exchange", "direct"), ("put_message", "LL128")} <= ways_timed


def test_messages_of_kernels_are_timed_by_every_protocol(team: MadeUpTeam, tmp_path: Path) -> None:
    series = ways.measured(ways.Ranks(2, "gpu", "cuda", ("put_message",)), tmp_path, 600.0, lambda *told: None)
    assert {one["way"] for one in series} == {"LL", "LL128", "stores", "bulk"}
    assert {mode for _, mode in team.modes} == {"kernel"}
    longest = {one["way"]: one["points"][-1]["bytes"] for one in series}
    assert longest["LL"] < longest["stores"]


def test_an_older_profile_gets_what_it_lacks(team: MadeUpTeam) -> None:
    two = ways.ranks_to_time("cuda", 2)[0]
    older = [{"ranks": 2, "memory": "gpu", "operation": "all_reduce"}]
    assert _missing(two, older).operations == ("message", "prepared_exchange", "put_message")
    assert _missing(two, []).operations == (*ways.COLLECTIVES, "message", "prepared_exchange", "put_message")
    older.append({"ranks": 2, "memory": "gpu", "operation": "message"})
    assert _missing(two, older).operations == ("prepared_exchange", "put_message")


def test_no_time_no_series(team: MadeUpTeam, tmp_path: Path) -> None:
    assert ways.measured(ways.Ranks(2, "gpu", "cuda"), tmp_path, 0.0, lambda *told: None) == []
    assert team.asked == []


def test_machines_without_gpus_time_two_ranks_in_host_memory() -> None:
    (two,) = ways.ranks_to_time("host", 0)
    assert two == ways.Ranks(2, "host", "host", (*ways.COLLECTIVES, "message"))
    assert two.ways("message", 8) == ["lane", "ucx", "copies"]
    assert [one.count for one in ways.ranks_to_time("cuda", 4)] == [4, 2, 2]
    assert "ring" in ways.Ranks(2, "host", "host").ways("all_reduce", 8)


def test_what_is_known_is_not_timed_again(team: MadeUpTeam, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path) / "profile.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"unavailable": []}))
    results = Results(tmp_path)
    collectives_into(results, 0, 60.0, fresh=False)
    asked = len(team.asked)
    assert asked > 0
    collectives_into(Results(results.folder), 0, 60.0, fresh=False)
    assert len(team.asked) == asked
    profile: dict[str, Any] = json.loads((results.folder / "profile.json").read_text())
    assert {one["memory"] for one in profile["collectives"]} == {"host"}
    assert run(["explain", "all_reduce", "host", "1K", "--results", str(results.folder)]) == 0
    told = capsys.readouterr().out
    assert "2 ranks" in told
    assert "* " in told
    assert run(["explain", "message", "host", "1K", "--results", str(results.folder)]) == 0
    told = capsys.readouterr().out
    assert all(way in told for way in ("lane", "ucx", "copies"))
    assert run(["explain", "all_reduce", "gpu", "1K", "--results", str(results.folder)]) == 2
