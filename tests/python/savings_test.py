"""`waywiser report --savings`: a table of jobs and measured gains."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import made_up
import pytest

from waywiser import cli
from waywiser.apply.setting import Setting, Settings
from waywiser.apply.store import keep
from waywiser.errors import InputError
from waywiser.prove.gains import (
    ASSUMED,
    PROVED,
    TOLD,
    Gain,
    NodeGains,
    proved_gains,
    same_everywhere,
)
from waywiser.prove.savings import gains_told, read_jobs, savings

SACCT = """JobID|Partition|AllocTRES|ElapsedRaw|Start|End
100|a100|cpu=64,gres/gpu:a100=4,gres/gpu=4,node=1|36000|2026-01-01T00:00:00|2026-01-01T10:00:00
100.batch|a100|cpu=64,gres/gpu=4|36000|2026-01-01T00:00:00|2026-01-01T10:00:00
101|cpu|cpu=64|36000|2026-01-01T00:00:00|2026-01-10T00:00:00
102|v100|gres/gpu=8|3600|Unknown|Unknown
"""


def test_jobs_of_a_proved_program_count_as_a_whole() -> None:
    table = "NodeType,GPUHours,JobName,CommShare\nx,100,train,0.1\nx,100,other,0.5\ny,100,train,0.1\nx,50,slow,0.5\n"
    programs = {"train": Gain(1.25, PROVED), "slow": Gain(1.0, PROVED)}
    gains = {"x": replace(same_everywhere(2.0, PROVED), programs=programs), "y": same_everywhere(2.0, PROVED)}
    found = {(one.node_type, one.program): one.saved for one in savings(read_jobs(table, "jobs.csv"), gains, 0.2)}
    # 100 x (1 - 1 / 1.25); a program that does not gain saves nothing; others by their share of communication.
    assert found == pytest.approx({("x", "train"): 20, ("x", "slow"): 0, ("x", ""): 25, ("y", ""): 5})


def test_an_export_of_sacct_is_read_as_it_is() -> None:
    jobs = read_jobs(SACCT, "jobs.csv")
    assert [(job.node_type, job.gpu_hours) for job in jobs] == [("a100", 40), ("cpu", 0), ("v100", 8)]
    found = {one.node_type: one for one in savings(jobs, {"a100": same_everywhere(1.25, PROVED)}, 0.5)}
    assert found["a100"].saved == pytest.approx(40 * 0.5 * 0.2)
    assert found["a100"].saved_a_year == pytest.approx(4 * 365.25 / 9)
    assert found["v100"].saved == 0


@pytest.mark.parametrize(
    ("tres", "gpus"),
    [
        ("gres/gpu:a100=4,gres/gpu:v100=2,node=2", 6),
        ("gres/gpu=6,gres/gpu:a100=4,gres/gpu:v100=2,node=2", 6),
        ("gres/gpu:a100=4,gres/gpu:v100=2,gres/gpu=6,node=2", 6),
        ("gres/gpu:1g.10gb=7,gres/gpu:h100=1,node=1", 8),
        ("gres/gpu:nvidia_h100_80gb_hbm3_1g.10gb+me=3,gres/gpumem=80G,gres/gpuutil=100,gres/shard=9", 3),
        ("billing=8,cpu=8", 0),
        ("gres/gpu=4K,node=1K", 4096),
        ("gres/gpu:a100=1.50K,gres/gpu:v100=2", 1538),
    ],
)
def test_gpus_of_several_types(tres: str, gpus: int) -> None:
    (job,) = read_jobs(f"JobID|Partition|AllocTRES|ElapsedRaw\n1|gpu|{tres}|3600\n", "jobs")
    assert job.gpu_hours == gpus


@pytest.mark.parametrize(("text", "nodes"), [("1", 1), ("1K", 1024), ("1.50K", 1536), ("1.34K", 1372), ("1M", 1 << 20)])
def test_numbers_of_nodes_as_slurm_writes_them(text: str, nodes: int) -> None:
    table = "NodeType|GPUHours|NNodes|AllocTRES\n"
    (one, other) = read_jobs(f"{table}x|1|{text}|\nx|1||gres/gpu=1,node={text}\n", "jobs")
    assert one.nodes == other.nodes == nodes


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:a100:4,gpu:v100:2", 6),
        ("gpu:6", 6),
        ("gpu:a100:4(S:0-1),gpu:v100:2(S:0)", 6),
        ("gpu:1g.10gb:7,nic:2,mps:400", 7),
        ("gres:gpu:2", 2),
        ("craynetwork:1", 0),
    ],
)
def test_gpus_of_older_accounting(gres: str, gpus: int) -> None:
    (job,) = read_jobs(f"JobID|Partition|AllocGRES|ElapsedRaw\n1|gpu|{gres}|3600\n", "jobs")
    assert job.gpu_hours == gpus
    with pytest.raises(InputError, match="line 2: 'some' is not a number of GPUs"):
        read_jobs("JobID|Partition|AllocGRES|ElapsedRaw\n1|gpu|gpu:a100:some|3600\n", "jobs")


@pytest.mark.parametrize("text", ["some", "1.234K", "1.3K", "-1", "1k", "1e3", "9999999", "1.50"])
def test_other_numbers_are_refused(text: str) -> None:
    for cells, what in ((f"1|{text}|", "nodes"), (f"1||node={text}", "nodes"), (f"||gres/gpu={text}", "GPUs")):
        with pytest.raises(InputError, match=f"line 2: '{text}' is not a number of {what}"):
            read_jobs(f"NodeType|GPUHours|NNodes|AllocTRES\nx|{cells}\n", "jobs")


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
    (one, _) = savings(jobs, {}, 0.5, same_everywhere(2.0, ASSUMED))
    assert one.saved == pytest.approx(52 * 0.25 / 2)
    assert one.saved_a_year == 0  # nobody told when


def test_jobs_on_several_nodes_have_a_gain_of_their_own() -> None:
    text = 'NodeType,GPUHours,CommShare,AllocTRES,NNodes\nx,10,0.5,,\nx,100,0.5,,4\nx,100,0.5,"cpu=8,node=2",\n'
    jobs = read_jobs(text, "x")
    assert [job.nodes for job in jobs] == [1, 4, 2]
    both = NodeGains(Gain(2.0, PROVED), Gain(1.25, PROVED))
    one, several = savings(jobs, {"x": both}, 0.2)
    assert (one.several, one.jobs, one.saved) == (False, 1, pytest.approx(10 * 0.5 / 2))
    assert (several.several, several.jobs, several.saved) == (True, 2, pytest.approx(200 * 0.5 * 0.2))
    one, several = savings(jobs, {"x": NodeGains(Gain(2.0, PROVED))}, 0.2)
    assert (several.gain, several.saved) == (None, 0)  # nothing was verified between nodes
    with pytest.raises(InputError, match="line 2: 'some' is not a number of nodes"):
        read_jobs("NodeType,GPUHours,NNodes\nx,1,some\n", "x")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs columns"),
        ("a,b\n1,2\n", "needs columns"),
        ("NodeType,GPUHours,CommShare\nx,1,7\n", "line 2: CommShare 7.0 is not between"),
        ("NodeType,AllocTRES,Elapsed\nx,gres/gpu=1,long\n", "line 2: needs ElapsedRaw or Elapsed"),
        ("NodeType,AllocTRES,ElapsedRaw\nx,gres/gpu=1,abc\n", "line 2: ElapsedRaw 'abc' is not a number"),
        ("NodeType,GPUHours\nx,nan\n", "line 2: nan GPU-hours"),
        ("NodeType,GPUHours\nx,-1\n", "line 2"),
    ],
)
def test_bad_tables_name_the_line(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_jobs(text, "jobs.csv")


def test_gains_that_are_told() -> None:
    assert gains_told(["a=b=1.5"]) == {"a=b": same_everywhere(1.5, TOLD)}
    for word in ("x", "x=fast", "x=0.5", "=2"):
        with pytest.raises(InputError, match="write TYPE=FACTOR"):
            gains_told([word])


def evidence(folder: Path, gain: float, nodes: list[str], fingerprint: str = "abcd", machine: str = "a100") -> None:
    steps = [{"kept": "eager", "verdicts": {"eager": {"gain": gain}}}, {"kept": "base", "verdicts": {}}]
    value = {"schema": "waywiser.evidence", "version": 1, "machine": machine, "fingerprint": fingerprint}
    (folder / "evidence").mkdir(exist_ok=True)
    name = f"{fingerprint}-openmpi{'-nodes' if nodes else ''}.json"
    (folder / "evidence" / name).write_text(json.dumps(value | {"nodes": nodes, "steps": steps}))


def test_the_verb_takes_proved_gains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence(tmp_path, 1.25, [])
    (tmp_path / "jobs.csv").write_text(SACCT)
    assert proved_gains(tmp_path) == {"a100": NodeGains(within=Gain(1.25, PROVED))}
    arguments = ["report", "--savings", str(tmp_path / "jobs.csv"), "--results", str(tmp_path), "--share", "0.5"]
    assert cli.run(arguments) == 0
    out = capsys.readouterr().out
    assert "GPU-hours a year" in out and "50 % assumed" in out and "1.25 x assumed" in out
    evidence(tmp_path, 1.5, ["n1", "n2"])
    assert proved_gains(tmp_path)["a100"].between == Gain(1.5, PROVED)
    assert cli.run(["report", "--savings", str(tmp_path / "nothing.csv")]) == 2
    assert cli.run([*arguments, "--node-type", "h100"]) == 2
    assert "--node-type 'h100'" in capsys.readouterr().err


JOBS = """NodeType,GPUHours,CommShare,NNodes,Start,End
big,1000,0.3,1,2026-01-01T00:00:00,2026-01-31T00:00:00
big,4000,0.3,4,2026-01-01T00:00:00,2026-03-31T00:00:00
"""


def page(folder: Path, *words: str) -> str:
    assert cli.run(["report", "--results", str(folder), "--no-pictures", *words]) == 0
    text = (folder / "report.html").read_text()
    return text[text.index('id="settings"') :] if 'id="settings"' in text else ""


def test_the_page_tells_gpu_hours_with_a_table_of_jobs_and_per_cent_without(tmp_path: Path) -> None:
    made_up.write(tmp_path)
    profile = made_up.profile(4) | {"fingerprint": "abcd1234"}
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    assert page(tmp_path) == ""  # nothing is known yet
    won = Setting("ucx", "UCX_POSIX_BW", "9000MBs", "", "posix is faster", "x", proof="1.25 x the speed")
    lost = Setting("nccl", "NCCL_IB_HCA", "=mlx5_0", "", "the nearest", "y", measured=False)
    keep(tmp_path, Settings(profile["fingerprint"], profile["machine"], settings=(won, lost)))
    evidence(tmp_path, 1.25, [], profile["fingerprint"], profile["machine"])
    text = page(tmp_path)
    assert "20.0 %" in text and "of the time in communication within a node is saved: 1.25 times the speed." in text
    assert "UCX_POSIX_BW=9000MBs" in text and "proved: 1.25 x the speed" in text and "a prediction" in text

    (tmp_path / "jobs.csv").write_text(JOBS)
    text = page(tmp_path, "--savings", str(tmp_path / "jobs.csv"))
    year = 1000 * 0.3 * 0.2 * 365.25 / 89  # the jobs on four nodes: nothing is known
    assert f">{year:,.0f}</strong>" in text and "not known" in text
    assert "GPU-hours a year are saved by the settings on nodes of type big" in text
    evidence(tmp_path, 1.5, ["n1", "n2"], profile["fingerprint"], profile["machine"])
    text = page(tmp_path, "--savings", str(tmp_path / "jobs.csv"))
    year += 4000 * 0.3 * (1 / 3) * 365.25 / 89
    assert f">{year:,.0f}</strong>" in text and "not known" not in text
    (tmp_path / "evidence").rename(tmp_path / "nothing")
    assert "No gain is known yet" in page(tmp_path, "--savings", str(tmp_path / "jobs.csv"))
    (tmp_path / "nothing").rename(tmp_path / "evidence")
    (tmp_path / "jobs.csv").write_text(JOBS + "small,1,0.3,1,,\n")
    text = page(tmp_path, "--savings", str(tmp_path / "jobs.csv"))
    assert "The table has no jobs of node type" in text and "its types: big, small" in text
    assert f">{year:,.0f}</strong>" in page(tmp_path, "--savings", str(tmp_path / "jobs.csv"), "--node-type", "big")


def test_what_verify_keeps_of_programs_weights_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, verdict in (("train", "faster"), ("slow", "slower"), ("lost", "no verdict: rank 1 did not get them")):
        told = {"fingerprint": "f", "machine": "x", "name": name, "gain": 1.25, "verdict": verdict}
        (tmp_path / "programs").mkdir(exist_ok=True)
        text = json.dumps({"schema": "waywiser.program", "version": 1, **told})
        (tmp_path / "programs" / f"{name}.json").write_text(text)
    found = proved_gains(tmp_path)["x"]
    assert found.programs == {"train": Gain(1.25, PROVED), "slow": Gain(1.0, PROVED)} and found.within is None
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("NodeType,GPUHours,JobName\nx,100,train\nx,100,lost\n")
    assert cli.run(["report", "--results", str(tmp_path), "--savings", str(jobs), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["savings"]["rows"]
    assert [(row["program"], row["gain"]) for row in rows] == [("", None), ("train", 1.25)]
    assert [row["saved"] for row in rows] == pytest.approx([0, 20])
