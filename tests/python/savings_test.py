"""`waywiser report --savings`: a table of jobs and measured gains."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from waywiser import cli
from waywiser.apply.evidence import measured_gains
from waywiser.apply.savings import gains_of, read_jobs, savings
from waywiser.errors import InputError

SACCT = """JobID|Partition|AllocTRES|ElapsedRaw|Start|End
100|a100|cpu=64,gres/gpu:a100=4,gres/gpu=4,node=1|36000|2026-01-01T00:00:00|2026-01-01T10:00:00
100.batch|a100|cpu=64,gres/gpu=4|36000|2026-01-01T00:00:00|2026-01-01T10:00:00
101|cpu|cpu=64|36000|2026-01-01T00:00:00|2026-01-10T00:00:00
102|v100|gres/gpu=8|3600|Unknown|Unknown
"""


def test_an_export_of_sacct_is_read_as_it_is() -> None:
    jobs = read_jobs(SACCT, "jobs.csv")
    assert [(job.node_type, job.gpu_hours) for job in jobs] == [("a100", 40), ("cpu", 0), ("v100", 8)]
    found = {one.node_type: one for one in savings(jobs, {"a100": 1.25}, 0.5, 1.0)}
    assert found["a100"].saved == pytest.approx(40 * 0.5 * 0.2)
    assert found["a100"].saved_a_year == pytest.approx(4 * 365.25 / 9)
    assert found["v100"].saved == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NodeType,GPUHours\nx," + "1" * 200_000 + "\n", "line 2: field larger than field limit"),
        ('NodeType,GPUHours\nx,"1\n' + "y,2\n" * 50_000, "field larger than field limit"),
        ("NodeType,GPUHours\nx,1\ry,2\n", "line 2: new-line character"),
        ("NodeType|GPUHours\nx|1\nx|one\n", "line 3: could not convert string to float: 'one'"),
        ("", "needs columns"),
    ],
)
def test_tables_that_are_none_are_refused_with_their_line(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as raised:
        read_jobs(text, "jobs.csv")
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 300


def test_elapsed_shares_and_commas() -> None:
    text = "NodeType,AllocTRES,Elapsed,CommShare\nx,gres/gpu=2,1-02:00:00,0.25\ny,gres/gpu=1,00:30:00,\n"
    jobs = read_jobs(text, "x")
    assert [(job.gpu_hours, job.share) for job in jobs] == [(52, 0.25), (0.5, None)]
    assert read_jobs("NodeType,GPUHours\nx,7.5\n", "x")[0].gpu_hours == 7.5
    assert savings(jobs, {}, 0.5, 2.0)[0].saved == pytest.approx(52 * 0.25 / 2)
    assert savings(jobs, {}, 0.5, 2.0)[0].saved_a_year == 0  # nobody told when


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs columns"),
        ("a,b\n1,2\n", "needs columns"),
        ("NodeType,GPUHours,CommShare\nx,1,7\n", "line 2: CommShare 7.0 is not between"),
        ("NodeType,AllocTRES,Elapsed\nx,gres/gpu=1,long\n", "line 2: needs ElapsedRaw or Elapsed"),
        ("NodeType,AllocTRES,ElapsedRaw\nx,gres/gpu=1,abc\n", "line 2: ElapsedRaw 'abc' is no number"),
        ("NodeType,GPUHours\nx,nan\n", "line 2: nan GPU-hours"),
        ("NodeType,GPUHours\nx,-1\n", "line 2"),
    ],
)
def test_bad_tables_name_the_line(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_jobs(text, "jobs.csv")


def test_gains_that_are_told() -> None:
    assert gains_of(["a=b=1.5"]) == {"a=b": 1.5}
    for word in ("x", "x=fast", "x=0.5", "=2"):
        with pytest.raises(InputError, match="write TYPE=FACTOR"):
            gains_of([word])


def test_the_verb_takes_measured_gains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [{"kept": "eager", "verdicts": {"eager": {"gain": 1.25}}}, {"kept": "base", "verdicts": {}}]
    evidence = {"schema": "waywiser.evidence", "version": 1, "machine": "a100", "steps": steps}
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence/abcd-openmpi.json").write_text(json.dumps(evidence))
    (tmp_path / "jobs.csv").write_text(SACCT)
    assert measured_gains(tmp_path) == {"a100": 1.25}
    arguments = ["report", "--savings", str(tmp_path / "jobs.csv"), "--results", str(tmp_path), "--share", "0.5"]
    assert cli.run(arguments) == 0
    out = capsys.readouterr().out
    assert "GPU-hours a year" in out and "50 % assumed" in out and "1.25 x assumed" in out
    assert cli.run(["report", "--savings", str(tmp_path / "nothing.csv")]) == 2
