"""Every check on a good and on a bad machine, and problems from practice."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from doctor_cases import CASES as OF_MACHINES
from doctor_cases import Case
from doctor_host_cases import HOST_CASES, clocks, files
from doctor_in_network_cases import IN_NETWORK_CASES
from doctor_machines import build
from doctor_storage_cases import STORAGE_CASES

from waywiser.doctor.check import looked
from waywiser.doctor.checks import CHECKS
from waywiser.doctor.facts import NOT_KNOWN, facts_of
from waywiser.look.finding import Status
from waywiser.look.root import Root

CASES = [*OF_MACHINES, *HOST_CASES, *IN_NETWORK_CASES, *STORAGE_CASES]
BY_ID = {check.id: check for check in CHECKS}


def root_of(case: Case, folder: Path) -> Root:
    results = folder / "results"
    for name, value in case.results.items():
        results.mkdir(exist_ok=True)
        (results / name).write_text(json.dumps(value))
    kept = results if case.results else None
    return build(folder / "root", case.files, case.commands, case.environment, case.spaces, case.user, kept)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}-{case.status}-{case.words[:24]}")
def test_machine(case: Case, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    finding = looked(BY_ID[case.check], root_of(case, tmp_path))
    assert finding.status.value == case.status, finding
    assert case.words in finding.text, finding


def test_every_check_has_a_good_and_another_machine() -> None:
    seen = defaultdict(set)
    for case in CASES:
        seen[case.check].add(case.status)
    assert sorted(BY_ID) == [f"D{number:02}" for number in range(1, 59)]
    assert len(CHECKS) == 58
    for check in BY_ID.values():
        if check.id == "D42":  # needs several machines: see doctor_cli_test.py
            continue
        good = {"ok"} if check.id != "D31" else {"ok", "not applicable"}
        assert seen[check.id] & good, check.id
        if check.id != "D18":  # the bad one takes two ranks: see doctor_cli_test.py and doctor_namespaces_test.py
            assert seen[check.id] & {"problem", "warning"}, check.id


def test_every_row_says_how_it_looks_and_what_to_do() -> None:
    for check in CHECKS:
        for text in (check.title, check.detection, check.remedy):
            assert text and "\n" not in text and len(text) < 110, (check.id, text)


def test_empty_machine_is_never_ok_without_a_look(tmp_path: Path) -> None:
    """Nothing is there and no command answers: whatever says ok must have needed nothing."""
    answers = {check.id: looked(check, build(tmp_path, {})) for check in CHECKS}
    assert {id_ for id_, found in answers.items() if found.status is Status.ok} <= {"D34"}
    assert {id_ for id_, found in answers.items() if found.status in (Status.problem, Status.warning)} == set()


def test_the_page_lists_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs/doctor.md").read_text()
    for check in CHECKS:
        assert f"| {check.id} | {check.title} | {check.detection} | {check.remedy} |" in page, check.id


def test_limits_and_clocks_are_compared_between_nodes(tmp_path: Path) -> None:
    moving = {"/proc/sys/kernel/numa_balancing": "1\n"}
    facts = facts_of(build(tmp_path / "told", clocks("schedutil") | files("1024") | moving))
    assert (facts["open files"], facts["CPU governor"], facts["NUMA balancing"]) == ("1024", "schedutil", "1")
    (tmp_path / "silent").mkdir()
    silent = facts_of(build(tmp_path / "silent", {}))
    assert {silent[name] for name in ("open files", "CPU governor", "NUMA balancing")} == {NOT_KNOWN}
