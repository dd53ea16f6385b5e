"""The opening of the page: the machine in its owner's words, what to do, cards of kinds of pairs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_up
import pytest

from waywiser.apply.setting import Setting, Settings
from waywiser.report.actions import INSTALL, PROVED, REPAIR, SET, Action, actions
from waywiser.report.choices import choices
from waywiser.report.headline import headline
from waywiser.report.page import render
from waywiser.report.pair_kinds import kinds
from waywiser.report.score import RATIO, SAME_MODEL
from waywiser.report.summary import summary, to_do
from waywiser.results import Results, recorded
from waywiser.topology import load_topology

Json = dict[str, Any]


def _machine(name: str) -> Json:
    value: Json = json.loads(load_topology(name).to_json())
    return value


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("recorded-4xh200", "4 x H200, NVSwitch, driver 580"),
        ("hse-c", "4 x V100-SXM2-32GB, NVLink"),
        ("dgx-2", "16 x V100-SXM3-32GB, NVSwitch"),
        ("remote-t4", "1 x T4"),
    ],
)
def test_the_headline_is_the_machine_in_its_owners_words(name: str, words: str) -> None:
    assert headline(_machine(name), "vm") == words


def test_a_machine_without_gpu_is_its_cpus_and_sockets() -> None:
    cpus = [{"id": f"cpu{i}", "kind": "cpu", "name": "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz"} for i in range(2)]
    assert headline({"devices": cpus}, "vm") == "Intel Xeon E5-2680 v4, 2 sockets, no GPU"
    assert headline({"devices": cpus[:1]}, "vm") == "Intel Xeon E5-2680 v4, 1 socket, no GPU"
    assert headline(None, "vm") == "vm"


def _results(folder: Path, change: Callable[[str, Json], None] = lambda name, value: None) -> Results:
    made_up.write(folder)
    for file in folder.glob("*.json"):
        value = json.loads(file.read_text())
        change(file.stem, value)
        file.write_text(json.dumps(value))
    return Results(folder)


def _simulated(name: str, value: Json) -> None:
    if name in ("profile", "plan"):
        value["simulated"] = True


def test_what_to_do_comes_before_the_evidence_and_the_score_last(tmp_path: Path) -> None:
    page = render(_results(tmp_path))
    order = [page.index(f'id="{name}"') for name in ("todo", "machine", "best-paths", "matrices", "verification")]
    assert order == sorted(order)
    assert "<h1>4 x Made-up GPU, NVSwitch</h1>" in page
    assert "<title>4 x Made-up GPU, NVSwitch - Waywiser</title>" in page
    score = re.search(r'class="figure (good|bad)">\d+ of \d+<', page)
    assert RATIO in page  # why times and ratio of a row can differ
    assert score and score.start() > page.index('id="verification"')


def _of(found: list[Any], kind: str) -> list[tuple[str, str]]:
    return [(one.text, one.command) for one in found if one.kind == kind]


def test_nothing_to_repair_is_said_with_the_next_command(tmp_path: Path) -> None:
    results = _results(tmp_path, lambda name, value: value.update(unavailable=[]) if name == "profile" else None)
    found = actions(results, None)
    [(text, command)] = _of(found, REPAIR)
    assert text.startswith("Nothing in these measurements") and command == "waywiser doctor"
    assert _of(found, SET)[0][1] == f"waywiser apply --results {tmp_path}"
    assert any("arrived intact" in text for text, _ in _of(found, PROVED))


def _broken(name: str, value: Json) -> None:
    if name == "topology":
        value["links"][-1]["width"], value["links"][-1]["max_width"] = 8, 16
        value["devices"][1]["attributes"] = {"nvlinks": "18", "nvlinks_active": "16"}
    if name == "profile":
        value["rejected"][0]["reason"] = "the data did not arrive intact"
        one = next(s for s in value["series"] if s["path"]["source"] == "gpu0" and s["path"]["destination"] == "gpu1")
        survey = []
        for source, destination, factor in (("gpu0", "gpu1", 1), ("gpu0", "gpu2", 1), ("gpu3", "gpu1", 2)):
            point = {**one["points"][-1]}
            for key in ("seconds", "low", "high", "p50", "p99"):
                point[key] *= factor
            path = {**one["path"], "source": source, "destination": destination}
            survey.append({**one, "operation": "streaming", "path": path, "points": [point]})
        value["survey"] = survey


def test_what_is_slow_or_broken_is_named_with_its_command(tmp_path: Path) -> None:
    repairs = dict(_of(actions(_results(tmp_path, _broken), None), REPAIR))
    texts = "\n".join(repairs)
    assert "Data did not arrive intact: host0 to host0." in texts
    assert "gpu3 - host0 runs below its best: PCIe 5 ×8 of ×16" in texts
    assert "16 of 18 NVLinks of gpu0 are up" in texts
    assert "gpu3 to gpu1 is odd" in texts
    assert repairs["16 of 18 NVLinks of gpu0 are up."] == "waywiser doctor --only D13"
    [(text, command)] = _of(actions(_results(tmp_path), None), INSTALL)
    assert "bar_copy is not available" in text and command == "waywiser doctor --only GDRCopy"


def _setting(name: str, proof: str) -> Setting:
    return Setting("ucx", name, "y", "n", "measured", name, proof=proof)


def test_settings_are_proved_or_to_be_proved(tmp_path: Path) -> None:
    results = _results(tmp_path)
    won, open_ = _setting("UCX_RNDV_THRESH", "1.20 times the default"), _setting("UCX_TLS", "")
    found = actions(results, Settings("f", "m", settings=(won, open_)))
    commands = [command for _, command in _of(found, SET)]
    assert commands[0].startswith('eval "$(waywiser env --proved')
    assert commands[1].startswith("waywiser verify --with ucx")
    assert ("UCX_RNDV_THRESH=y: 1.20 times the default", "") in _of(found, PROVED)
    nothing = actions(results, Settings("f", "m"))
    assert _of(nothing, SET)[0][0].startswith("Nothing: the defaults")


def test_tune_ends_with_the_first_statements_of_the_page(tmp_path: Path) -> None:
    results = _results(tmp_path)
    told = str(to_do(results))
    assert told.startswith("what to do:\n- slow or broken: ")
    page = [one for one in actions(results, None) if one.kind in (REPAIR, SET)]
    assert all(one.text in told and f"\n    {one.command}" in told for one in page) and len(page) <= 4
    assert "No settings of UCX, Open MPI, MPICH or NCCL" in told and "waywiser apply" in told


def test_tune_leaves_the_rest_to_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [Action(REPAIR, f"link {number} is slow", "waywiser doctor", bad=True) for number in range(5)]
    monkeypatch.setattr("waywiser.report.summary.actions", lambda *_: many)
    told = str(to_do(_results(tmp_path))).splitlines()
    assert told[1:] == [
        "- slow or broken: link 0 is slow",
        "    waywiser doctor",
        "- slow or broken: link 1 is slow",
        "    waywiser doctor",
        "- slow or broken: 3 more in the report",
    ]


def test_a_simulated_plan_does_not_score_itself(tmp_path: Path) -> None:
    results = _results(tmp_path, _simulated)
    page = render(results)
    assert SAME_MODEL in page and 'class="figure' not in page.split('id="settings"')[0].split('id="verification"')[-1]
    assert "paths simulated" in page and "paths measured" not in page
    text = "\n".join(str(part) for part in summary(results))
    assert SAME_MODEL in text and "within 5 %" not in text and "simulated" in text
    assert _of(actions(results, None), PROVED)[0][0].startswith("Nothing: these figures were not measured")


def test_simulated_figures_are_nowhere_called_measured(tmp_path: Path) -> None:
    page = re.sub(r"<(script|style).*?</\1>", "", render(_results(tmp_path, _simulated)), flags=re.DOTALL)
    before_choices, choices = page.split('id="choices"')
    assert re.search(r"\d+ of \d+ pairs simulated\.", page) and "simulated gpu0 to gpu1, stands for" in page
    assert "<td>Simulated</td>" in choices and "<td>Measured</td>" not in choices
    told = {text for text in re.split(r'[<>"]', before_choices) if re.search(r"measured", text, re.IGNORECASE)}
    assert all("not measured" in text for text in told)


def _second_socket(factor: float, operation: str = "") -> Callable[[str, Json], None]:
    """A class of other pairs with the same relation, `factor` times as slow, or its `operation` only."""

    def change(name: str, value: Json) -> None:
        if name not in ("profile", "plan"):
            return
        rename = {"gpu0": "gpu10", "gpu1": "gpu11", "gpu2": "gpu12", "gpu3": "gpu13"}
        text = json.dumps(value)
        for old, new in rename.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        other = json.loads(text)
        if name == "profile":
            groups = [group for group in other["classes"] if group["name"] == "gpu>gpu NV18"]
            value["classes"] += [{**group, "name": "gpu>gpu NV18 #2"} for group in groups]
            more = [one for one in other["series"] if one["path"]["source"] == "gpu10" != one["path"]["destination"]]
            more = [one for one in more if one["path"]["destination"].startswith("gpu")]
            for one in [one for one in more if operation in ("", one["operation"])]:
                for point in one["points"]:
                    for key in ("seconds", "low", "high", "p50", "p99"):
                        point[key] *= factor
            value["series"] += more
        else:
            more = [row for row in other["rows"] if row.get("pairs", [[]])[0] == ["gpu10", "gpu11"]]
            for row in [row for row in more if operation in ("", row["operation"])]:
                for one in row["expected"]:
                    one["seconds"] *= factor
            value["rows"] += more

    return change


@pytest.mark.parametrize(("factor", "cards"), [(1.05, 0), (1.5, 1)])
def test_classes_with_equal_figures_share_a_card(factor: float, cards: int, tmp_path: Path) -> None:
    plain = render(_results(tmp_path / "a")).count('class="tile"')
    results = _results(tmp_path / "b", _second_socket(factor))
    page = render(results)
    assert page.count('class="tile"') == plain + cards == 4 + cards
    assert ("and 1 class like it (within 10 %)" in page) == (cards == 0)
    assert "NV18 #2" not in page
    assert ("GPU to GPU, NV18, as gpu10 to gpu11" in page.split('id="machine"')[0]) == (cards == 1)
    profile, plan = results.needed_profile(), results.plan
    assert plan is not None
    found = kinds(choices(profile, plan))
    members = [group for kind in found for group in (kind.shown, *kind.others)]
    assert sorted(members, key=str) == sorted(profile.classes, key=str)


def test_classes_that_differ_in_what_no_card_shows_share_one(tmp_path: Path) -> None:
    results = _results(tmp_path, _second_socket(3, "bidirectional"))
    profile, plan = results.needed_profile(), results.plan
    assert plan is not None
    assert any("gpu10" in kind.shown.title for kind in kinds(choices(profile, plan)))
    opening = render(results).split('id="machine"')[0]
    assert opening.count('class="tile"') == 4 and "and 1 class like it (within 10 %)" in opening


def test_two_sockets_have_few_cards_and_no_numbered_classes() -> None:
    page = render(recorded("recorded-4xh200"))
    assert 3 <= page.count('class="tile"') <= 6
    assert "host&gt;host" not in page and "(2p)" not in page


def test_the_state_of_the_machine_is_in_words_and_its_long_lists_are_folded(tmp_path: Path) -> None:
    def change(name: str, value: Json) -> None:
        if name == "profile":
            value["state"] = {"gpus": [{"name": "H200", "sm_clock_mhz": 1980}] * 2, "notes": ["a", "b", "c", "d", "e"]}

    page = render(_results(tmp_path, change)).split("State of the machine")[1].split("</table>")[0]
    assert "<td>gpus</td><td><ul><li>name H200, sm clock mhz 1980</li><li>name H200" in page
    assert "<td>notes</td><td><details><summary>5 of them</summary><ul><li>a</li>" in page
    assert "{" not in page
