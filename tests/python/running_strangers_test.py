"""`waywiser doctor --job` beside other processes: what they say does no harm. Made-up folders of /proc: no job ran."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_up_job import LAUNCHER, LIBNCCL, MadeJob, MadeRank, look_at

from waywiser.errors import InputError
from waywiser.look.recorded import recorded_root
from waywiser.running.ranks import find_job
from waywiser.running.shown import as_json, not_known


def test_secrets_are_not_shown_and_control_characters_neither(tmp_path: Path) -> None:
    ours = "/opt/waywiser/libwaywiser.so.0.1"
    ranks = [MadeRank([ours], {"WAYWISER_SECRET": "x" * 16, "WAYWISER_MAILBOX": "a\x1b[31mb"})]
    seen, found = look_at(tmp_path, MadeJob(ranks))
    text = as_json(seen, found)
    assert "x" * 16 not in text and "\\u001b" not in text and "WAYWISER_MAILBOX" in text


def test_another_network_namespace_is_said(tmp_path: Path) -> None:
    ranks = [MadeRank([LIBNCCL], namespaces={"net": f"net:[{rank + 1}]"}) for rank in range(2)]
    seen, found = look_at(tmp_path, MadeJob(ranks))
    told = [line for line in not_known(seen, found) if "namespace" in line]
    assert told == ["rank 1: bytes of its connections: ask in its network namespace (nsenter -n)"]


def test_what_other_processes_say_does_no_harm(tmp_path: Path) -> None:
    """Contradictory variables, garbage, and a process that has just ended."""
    look_at(tmp_path, MadeJob([MadeRank([LIBNCCL]), MadeRank([LIBNCCL])]))
    proc = tmp_path / "0/proc"
    for number, stat, environ in (
        (400, "400 (a) S 100 1", "RANK=x\0WORLD_SIZE=1"),
        (401, "x)", "\xff=\0=\0A"),
        (402, "", ""),
    ):
        (proc / str(number)).mkdir()
        (proc / str(number) / "stat").write_text(stat)
        (proc / str(number) / "environ").write_text(environ)
    (proc / "102/maps").write_text("7f00 nonsense\n" + "x" * 10_000)
    (proc / "101/net/tcp").write_text("head\n  0: 0100007F:E79B ZZ\n  1: 01:02 03:04 01\n")
    job = find_job(recorded_root(tmp_path / "0"), 101)
    assert [rank.process.number for rank in job.ranks] == [101, 102]
    with pytest.raises(InputError, match="RANK='x' is no number"):
        find_job(recorded_root(tmp_path / "0"), 400)
    with pytest.raises(InputError, match="there is no process 401"):
        find_job(recorded_root(tmp_path / "0"), 401)


def test_two_jobs_below_one_shell_are_told_apart(tmp_path: Path) -> None:
    job = MadeJob([MadeRank([LIBNCCL])])
    look_at(tmp_path, job)
    folder = tmp_path / "0"
    for name, text in (("stat", "300 (x) S 100 1 1"), ("cmdline", "x"), ("environ", _variables("another"))):
        (folder / "proc/300").mkdir(exist_ok=True)
        (folder / "proc/300" / name).write_text(text)
    with pytest.raises(
        InputError, match=f"process {LAUNCHER} has 2 jobs below it: name a rank of one, such as 101, 300"
    ):
        find_job(recorded_root(folder), LAUNCHER)
    assert [rank.process.number for rank in find_job(recorded_root(folder), 300).ranks] == [300]


def _variables(name: str) -> str:
    told = {"RANK": 0, "WORLD_SIZE": 1, "TORCHELASTIC_RUN_ID": name, "MASTER_PORT": 1}
    return "\0".join(f"{key}={value}" for key, value in told.items())
