"""The set-up of a rank before its program starts, the required paths of a run, and the watched counters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from doctor_machines import OPEN, TWO_GPUS, build, cma, gpu, nic, nvlinks

from waywiser import _core
from waywiser.apply.setting import Setting, Settings
from waywiser.apply.store import keep
from waywiser.doctor.checks import CHECKS
from waywiser.errors import InputError
from waywiser.look.job import local_rank
from waywiser.monitor.counters import Sample
from waywiser.run.rank_setup import setup_for
from waywiser.run.require import ROADS, missing, required
from waywiser.run.watch import keep_watched, watched
from waywiser.topology.load import read_machine

pytestmark = pytest.mark.slow
SETTINGS = Settings("abcd", "node", settings=(Setting("ucx", "UCX_CMA_BW", "9000MBs", "", "measured", "x"),))
EVERY = set(range(1024))


def test_each_rank_gets_its_gpu_nic_and_cores() -> None:
    topology = read_machine("hse-c")  # two CPUs with 24 cores of two threads, two GPUs and a NIC each
    setups = [setup_for(topology, SETTINGS, rank, 4, {}, EVERY) for rank in range(4)]
    assert [one.gpu for one in setups] == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert [one.variables["UCX_NET_DEVICES"] for one in setups] == ["mlx5_0:1"] * 2 + ["mlx5_1:1"] * 2
    assert all(len(one.cpus) == 24 for one in setups)
    assert len(set().union(*(one.cpus for one in setups))) == 96
    assert set(setups[0].cpus) == {*range(12), *range(48, 60)}  # whole cores: both threads of each
    assert set(setups[2].cpus) <= {*range(24, 48), *range(72, 96)}
    assert setups[0].variables["UCX_CMA_BW"] == "9000MBs"


def test_more_ranks_than_gpus_share() -> None:
    topology = read_machine("hse-c")
    setups = [setup_for(topology, SETTINGS, rank, 8, {}, EVERY) for rank in range(8)]
    assert setups[4].gpu == "gpu0" and not set(setups[4].cpus) & set(setups[0].cpus)
    crowded = setup_for(topology, SETTINGS, 3, 4, {}, {30})
    assert crowded.cpus == (30,)


def test_an_unknown_machine_gets_binding_only_and_says_so() -> None:
    setup = setup_for(read_machine("hse-c"), None, 1, 2, {"UCX_TLS": "tcp"}, EVERY)
    assert setup.variables == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} and setup.removed == {}
    assert setup.cpus and "binding only" in setup.why[0]


def test_harmful_variables_go_and_others_stay() -> None:
    given = {"UCX_TLS": "tcp", "UCX_RNDV_THRESH": "inf", "UCX_CMA_BW": "5000MBs", "PATH": "/bin"}
    setup = setup_for(_core.discover(), SETTINGS, 0, 1, given, {0, 1})
    assert set(setup.removed) == {"UCX_TLS", "UCX_RNDV_THRESH"}
    assert setup.environment(given) == {"UCX_CMA_BW": "5000MBs", "PATH": "/bin"} | dict(setup.variables)
    assert any("is kept as you set it" in line for line in setup.why)
    assert any("leaves out" in line for line in setup.why)


@pytest.mark.parametrize("where", ["HOME", "UCX_CONFIG_DIR", "cwd"])
def test_a_harmful_file_is_overruled(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ucx.conf").write_text("UCX_TLS=tcp\nUCX_RNDV_THRESH = 1\n")
    monkeypatch.chdir(tmp_path if where == "cwd" else "/")
    given = {} if where == "cwd" else {where: str(tmp_path)}
    here = _core.discover()
    setup = setup_for(here, SETTINGS, 0, 1, given, {0, 1})
    assert (setup.variables["UCX_TLS"], setup.variables["UCX_RNDV_THRESH"]) == ("all", "auto")
    (line,) = [line for line in setup.why if line.startswith("UCX_TLS=all overrules a file: UCX_TLS=tcp (")]
    assert str(tmp_path / "ucx.conf") in line
    # If the variable is removed, the file's value applies.
    both = setup_for(here, SETTINGS, 0, 1, {**given, "UCX_TLS": "tcp"}, {0, 1})
    assert both.removed["UCX_TLS"] and both.variables["UCX_TLS"] == "all"
    assert "UCX_TLS" not in setup_for(here, SETTINGS, 0, 1, {**given, "UCX_TLS": "^cma"}, {0, 1}).variables
    assert "UCX_TLS" not in setup_for(here, None, 0, 1, given, {0, 1}).variables


def test_a_machine_without_gpu_shares_its_cores() -> None:
    here = _core.discover()
    if here.ids("gpu"):
        pytest.skip("this machine has a GPU")
    halves = [set(setup_for(here, None, rank, 2, {}, {0, 1, 2, 3}).cpus) for rank in range(2)]
    assert halves[0] | halves[1] == {0, 1, 2, 3} and not halves[0] & halves[1]


def test_required_roads(tmp_path: Path) -> None:
    links = "|".join(["26 GB/s"] * 12)
    root = build(tmp_path / "good", {**gpu(), "/proc/driver/nvidia/version": OPEN}, {**nvlinks(links), **cma()})
    assert missing(required("nvlink,cma"), root) == []
    down = build(tmp_path / "bad", TWO_GPUS, {**nvlinks(links, "26 GB/s|<inactive>"), **cma("EPERM")})
    lines = missing(required("nvlink, cma"), down)
    assert "nvlink is unavailable: D13: NVLinks are down" in lines[0] and "cma is unavailable" in lines[1]


def test_a_road_that_nobody_could_look_at_is_refused(tmp_path: Path) -> None:
    (line,) = missing(["gdr"], build(tmp_path, {**gpu(), **nic(), "/proc/sys/kernel/osrelease": "6.1"}))
    assert "D01" in line and "or D03: needs a trial on the machine itself" in line


def test_unknown_roads_are_bad_input() -> None:
    with pytest.raises(InputError, match="write some of gdr, nvlink"):
        required("warp")
    assert {id_ for road in ROADS.values() for way in road for id_ in way} <= {check.id for check in CHECKS}


def test_roads_that_bytes_took(tmp_path: Path) -> None:
    before = Sample({("nvlink", "gpu0", "sent"): 0, ("network", "eth0", "sent"): 0})
    after = Sample({("nvlink", "gpu0", "sent"): 10, ("network", "eth0", "sent"): 5 << 20})
    found = watched(before, after, 2.0, ["nvlink", "cma"])
    assert found.roads == ["network"] and found.fell_back == ("nvlink",) and found.not_counted == ("cma",)
    said = "1 of 1 wanted paths carried nothing: nvlink; instead: 5 MiB by the kernel's network"
    assert said in found.lines() and "cma is not visible in counters" in found.lines()
    assert "watched on n7 for 2.0 s: NVLink 10 B" in watched(before, after, 2.0, [], 8, "n7").lines()[0]
    value = json.loads(keep_watched(tmp_path, found).read_text())
    assert (value["nodes"], value["nic_bytes"], value["fell_back"]) == (1, 0, ["nvlink"])
    assert watched(before, Sample({("nvlink", "gpu0", "sent"): 1 << 30}), 1, ["nvlink"]).fell_back == ()


def run_cli(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    script = "from waywiser.cli import main; main()"
    drop = ("OMPI_", "SLURM_", "PMI", "WAYWISER_RANK", "WAYWISER_LOCAL")
    kept_variables = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    return subprocess.run(
        [sys.executable, "-c", script, "run", *arguments],
        env={**kept_variables, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


SHOW = """import os
told = (os.environ.get('UCX_TLS'), os.environ.get('UCX_CMA_BW'), len(os.sched_getaffinity(0)))
os.write(1, (' '.join(map(str, told)) + '\\n').encode())"""


def test_run_repairs_the_environment_and_binds(tmp_path: Path) -> None:
    settings = replace(SETTINGS, fingerprint=_core.discover().fingerprint)
    keep(tmp_path, settings)
    arguments = ["-n", "2", "--results", str(tmp_path), sys.executable, "-c", SHOW]
    done = run_cli(*arguments, UCX_TLS="tcp")
    cpus = max(1, len(os.sched_getaffinity(0)) // 2)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines] == [["None", "9000MBs"]] * 2
    assert _core.discover().ids("gpu") or all(cpus <= int(line[2]) <= cpus + 1 for line in lines)
    assert done.stderr.count("UCX_TLS is removed") == 1
    plain = run_cli("--plain", *arguments[2:], UCX_TLS="tcp")
    assert plain.stdout.split()[:2] == ["tcp", "None"]


@pytest.mark.parametrize(
    ("changes", "follows"), [({}, True), ({"fingerprint": "else"}, False), ({"simulated": True}, False)]
)
def test_run_follows_the_plan_of_this_machine(tmp_path: Path, changes: dict[str, object], follows: bool) -> None:
    plan = {"schema": "waywiser.plan", "version": 3, "fingerprint": _core.discover().fingerprint, "machine": "here"}
    plan |= {"backend": "host", "simulated": False, "other_nodes": [], "rows": [], **changes}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    said = "os.environ.get('WAYWISER_PLAN', 'None')"
    show = f"import os, sys, waywiser; waywiser.join(); sys.stdout.write({said} + '\\n')"
    done = run_cli("-n", "2", "--results", str(tmp_path), sys.executable, "-c", show)
    assert (done.returncode, done.stdout.split()) == (0, [str(file) if follows else "None"] * 2), done.stderr
    if follows:
        done = run_cli("-n", "2", sys.executable, "-c", show, WAYWISER_PLAN=str(tmp_path / "none.json"))
        assert done.returncode != 0 and "none.json" in done.stderr


def test_run_inside_a_job_is_for_its_own_rank(tmp_path: Path) -> None:
    told = {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8"}
    told |= {"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    show = "import os; print(os.environ.get('WAYWISER_RANK'), os.environ['OMPI_COMM_WORLD_RANK'])"
    done = run_cli("--results", str(tmp_path), sys.executable, "-c", show, **told)
    assert (done.returncode, done.stdout) == (0, "None 5\n"), done.stderr
    assert done.stderr == ""
    shown = run_cli("--dry-run", "--results", str(tmp_path), "x", **told)
    assert "binding only" in shown.stdout and shown.stdout.splitlines()[2].split()[0] == "1"


def test_run_watches_and_refuses(tmp_path: Path) -> None:
    done = run_cli("--watch", "--results", str(tmp_path), sys.executable, "-c", "raise SystemExit(7)")
    assert done.returncode == 7 and "watched for" in done.stderr
    assert json.loads((tmp_path / "watch.json").read_text())["schema"] == "waywiser.watch"
    refused = run_cli("--require", "imex", "--results", str(tmp_path), sys.executable, "-c", "print('started')")
    assert (refused.returncode, refused.stdout) == (2, "") and "imex is unavailable" in refused.stderr
    missing_program = run_cli("--results", str(tmp_path), "no-such-program")
    assert missing_program.returncode == 2 and "no-such-program" in missing_program.stderr


# Of seven ranks on several machines.
TASK = {"SLURM_PROCID": "3", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "7", "SLURM_STEP_NUM_NODES": "4"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (0, 1)),
        ({"SLURM_LOCALID": "3", "SLURM_PROCID": "0", "SLURM_TASKS_PER_NODE": "4(x2)"}, (0, 1)),  # a batch script
        ({**TASK, "SLURM_LOCALID": "1", "SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "2(x3),1"}, (1, 2)),
        ({**TASK, "SLURM_LOCALID": "0", "SLURM_NODEID": "3", "SLURM_STEP_TASKS_PER_NODE": "2(x3),1"}, (0, 1)),
        ({**TASK, "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "1,4,2(x2)"}, (1, 4)),
        ({**TASK, "SLURM_LOCALID": "0", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_TASKS_PER_NODE": "8"}, (0, 2)),
        ({**TASK, "SLURM_LOCALID": "1", "SLURM_NODEID": "9", "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}, (1, 2)),
        ({**TASK, "SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "x", "SLURM_TASKS_PER_NODE": "3"}, (1, 2)),
        ({**TASK, "SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "2(x", "SLURM_TASKS_PER_NODE": ""}, (1, 2)),
        ({"LOCAL_RANK": "1"}, (0, 1)),
        ({"WAYWISER_RANK": "2", "WAYWISER_SIZE": "8", "WAYWISER_LOCAL_RANK": "2", "WAYWISER_LOCAL_SIZE": "4"}, (2, 4)),
    ],
)
def test_place_on_the_node(environment: dict[str, str], expected: tuple[int, int]) -> None:
    assert local_rank(environment) == expected


def test_memory_of_the_near_node_is_preferred_and_nothing_is_bound_without_binding() -> None:
    topology = read_machine("hse-c")
    setups = [setup_for(topology, SETTINGS, rank, 4, {}, EVERY) for rank in range(4)]
    assert [one.memory for one in setups] == [0, 0, 1, 1]
    assert setup_for(topology, SETTINGS, 0, 1, {}, {0, 30}).memory == 0  # only the near CPU is taken
    loose = setup_for(topology, SETTINGS, 0, 4, {}, EVERY, bind=False)
    assert loose.cpus == () and loose.nic == "" and loose.memory is None and "UCX_NET_DEVICES" not in loose.variables
    assert loose.gpu == "gpu0" and loose.variables["UCX_CMA_BW"] == "9000MBs"


def test_processes_that_are_started_prefer_the_node_too() -> None:
    if not Path("/proc/self/numa_maps").exists():
        pytest.skip("a kernel without NUMA")
    script = (
        "import subprocess; from waywiser.run.memory_policy import prefer_memory; assert prefer_memory(0); "
        "print(subprocess.run(['cat', '/proc/self/numa_maps'], capture_output=True, text=True).stdout); "
        "assert prefer_memory(None) and not prefer_memory(-1); print('then', open('/proc/self/numa_maps').readline())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    child, _, after = done.stdout.partition("then")
    assert "prefer" in child and "default" in after


def test_explain_shows_what_ranks_are_bound_to(capsys: pytest.CaptureFixture[str]) -> None:
    from waywiser.cli import run

    assert run(["explain", "--binding", "--machine", "hse-c"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("4 ranks on hse-c")
    assert lines[5].split() == ["2", "gpu2", "24-35,72-83", "node", "1", "preferred", "nic1", "mlx5_1", "PHB"]
    assert run(["explain", "host0"]) == 2
    assert "or --binding" in capsys.readouterr().err


def test_run_can_leave_binding_alone() -> None:
    command = [sys.executable, "-c", "from waywiser.cli import main; main()", "run", "-n", "2"]
    show = ["grep", "Cpus_allowed_list", "/proc/self/status"]
    bound, loose = (
        subprocess.run([*command, *words, *show], capture_output=True, text=True, timeout=60).stdout.split()[1::2]
        for words in ([], ["--bind", "none"])
    )
    assert len(loose) == 2 and loose[0] == loose[1]
    if len(os.sched_getaffinity(0)) > 1:
        assert bound[0] != bound[1]
