"""`waywiser report --savings`: tables of jobs that no machine can have run, and the published sum as an example."""

from __future__ import annotations

from pathlib import Path

import pytest

from waywiser import cli
from waywiser.errors import InputError
from waywiser.prove.gains import TOLD, same_everywhere
from waywiser.prove.savings import read_jobs, savings

DAY = "2026-01-01T00:00:00,2026-01-02T00:00:00"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("GPUHours,Start,End\nx,1,2026-01-02T00:00:00,2026-01-01T00:00:00", r"line 2: it ends .* before it starts"),
        (f"GPUHours,Start,End\nx,1e9,{DAY}", "line 2: 1,000,000,000 GPU-hours between"),
        (f"AllocTRES,ElapsedRaw,Start,End\nx,gres/gpu=8,9000000,{DAY}", "9,000,000 s, from start to end are 86,400"),
        ("GPUHours\nx,9.75e9", "9,750,000,000 GPU-hours in one job"),
        ("AllocTRES,ElapsedRaw\nx,gres/gpu=8,9999999999", "line 2: it has run for 317 years"),
        ('AllocTRES,ElapsedRaw\nx,"gres/gpu=4096,node=1",3600', "line 2: 4096 GPUs on 1 node"),
        ("GPUHours,AllocTRES,ElapsedRaw\nx,5000,gres/gpu=8,3600", "5,000 GPU-hours, but 8 GPUs for 3,600 s are 8"),
        (f"GPUHours,AllocTRES,Start,End\nx,5000,gres/gpu=8,{DAY}", "but 8 GPUs for 86,400 s are 192"),
        (f"GPUHours,NNodes,Start,End\nx,3.25e8,2,{DAY}", "but at most 2048 GPUs of 2 nodes for 86,400 s are 49,152"),
        ("GPUHours,NNodes\nx,3.25e8,1", "but at most 1024 GPUs of 1 node for 315,576,000 s are 89,763,840"),
        ("JobID,GPUHours\nx,7,1\nx,7,1", "line 3: job 7 is there twice"),
        ("GPUHours,Start,End\n" + f"x,2e7,{DAY}\n" * 2, "40,000,000 GPU-hours in 1.0 days are 1,666,667 GPUs in use"),
    ],
)  # fmt: skip
def test_tables_that_no_machine_can_have_run_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, why: str
) -> None:
    (tmp_path / "jobs.csv").write_text(f"NodeType,{table}\n")
    assert cli.run(["report", "--savings", str(tmp_path / "jobs.csv"), "--results", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    with pytest.raises(InputError, match=why):
        read_jobs((tmp_path / "jobs.csv").read_text(), "jobs.csv")


def test_what_only_looks_odd_is_counted() -> None:
    again = "JobID|NodeType|GPUHours|Start\n7|x|1|2026-01-01T00:00:00\n7|x|1|2026-01-02T00:00:00\n"
    assert len(read_jobs(again, "x")) == 2  # queued again
    forward = "NodeType,AllocTRES,ElapsedRaw,Start,End\nx,gres/gpu=1,7200,2026-10-25T01:30:00,2026-10-25T02:30:00\n"
    assert read_jobs(forward, "x")[0].gpu_hours == 2  # the night in which clocks are put back
    mixed = "NodeType,GPUHours,Start,End\nx,1,2026-01-01T00:00:00Z,2026-01-02T00:00:00\n"
    assert read_jobs(mixed, "x")[0].gpu_hours == 1


def test_less_than_a_day_tells_nothing_of_a_year(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = read_jobs("NodeType,GPUHours,Start,End\nx,8,2026-01-01T00:00:00,2026-01-01T01:00:00\n", "x")
    (one,) = savings(jobs, {"x": same_everywhere(2.0, TOLD)}, 0.5)
    assert (one.saved, one.saved_a_year) == (2, 0)
    (tmp_path / "jobs.csv").write_text("NodeType,GPUHours,Start,End\nx,8,2026-01-01T00:00:00,2026-01-01T01:00:00\n")
    words = ["--savings", str(tmp_path / "jobs.csv"), "--results", str(tmp_path), "--gain", "x=2"]
    assert cli.run(["report", *words]) == 0
    assert "no figures per year: the jobs cover less than a day" in capsys.readouterr().out


def test_what_they_are_of_gpus_in_use_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader knows how many GPUs the cluster has."""
    (tmp_path / "jobs.csv").write_text(
        "NodeType,GPUHours,Start,End\nx,3.25e8,2025-01-01T00:00:00,2026-01-01T00:00:00\n"
    )
    words = ["--savings", str(tmp_path / "jobs.csv"), "--results", str(tmp_path), "--gain", "x=2"]
    assert cli.run(["report", *words]) == 0
    assert "1 job over 365.0 days: 37,100 GPUs in use all the time" in capsys.readouterr().out


def test_a_gain_of_a_type_that_the_table_has_not_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs.csv").write_text("NodeType,GPUHours\nx,1\nz,1\n")
    words = ["--savings", str(tmp_path / "jobs.csv"), "--results", str(tmp_path), "--gain", "x=2", "--gain", "y=2"]
    assert cli.run(["report", *words]) == 2
    assert capsys.readouterr() == ("", f"waywiser: --gain 'y': {tmp_path / 'jobs.csv'} has x, z\n")


def test_the_published_hours_as_an_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = Path(__file__).parents[2] / "docs/recorded/published-jobs.csv"
    assert cli.run(["report", "--savings", str(table), "--gain", "gpu=1.0309", "--results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "36,968 GPU-hours a year" in out and "37,000 GPU-hours a year" in out
