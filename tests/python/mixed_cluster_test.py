"""One command on nodes of several kinds: each rank gets the settings of its own kind of node.

The nodes are network namespaces that see a made-up /sys; Open MPI's own mpirun starts the ranks, as over ssh.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doctor_machines import BRIDGE1, GPU1, NIC1, Files, gpu, nic
from made_up_nodes import Node, Nodes

import waywiser._core as _core
from waywiser.apply.job_libraries import find_mpirun
from waywiser.apply.setting import Setting, Settings
from waywiser.apply.store import keep
from waywiser.errors import InputError

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
WAYWISER = [sys.executable, "-c", "from waywiser.cli import main; main()"]
SHOW = """import json, os, socket
told = {name: value for name, value in os.environ.items() if name.startswith(("UCX_", "CUDA_"))}
told |= {"host": socket.gethostname(), "cpus": sorted(os.sched_getaffinity(0))}
os.write(1, ("rank " + json.dumps(told) + "\\n").encode())"""
STEERING = ("OMPI_", "PMIX_", "PRTE_", "SLURM_", "UCX_", "CUDA_", "WAYWISER_")


def setting(value: str, measured: bool = True) -> Setting:
    return Setting("ucx", "UCX_POSIX_BW", value, "", "measured", "UCX_POSIX_BW", measured)


def memories(first: int, second: int) -> Files:
    """Two NUMA nodes with a CPU each."""
    cpus = {f"/sys/devices/system/node/node{i}/cpulist": str(cpu) for i, cpu in enumerate((first, second))}
    return cpus | {"/sys/devices/system/cpu/online": f"{first},{second}"}


def at_the_second_cpu(files: Files) -> Files:
    """Below a root complex of its own."""
    first, second = "pci0000:00", "pci0000:80"
    moved = {path.replace(first, second): value for path, value in files.items()}
    return {
        path: (value[0], value[1].replace(first, second)) if isinstance(value, tuple) else value
        for path, value in moved.items()
    }


@pytest.fixture
def cpus() -> tuple[int, int]:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("binding cannot be seen on one CPU")
    return allowed[0], allowed[1]


@pytest.fixture
def nodes(tmp_path: Path, cpus: tuple[int, int]) -> Iterator[Nodes]:
    if _core.discover().ids("gpu"):
        pytest.skip("the driver of this machine's GPUs shows them beside the made-up ones")
    near: dict[str, Any] = {"numa": 0, "cpus": str(cpus[0])}
    far: dict[str, Any] = {"numa": 1, "cpus": str(cpus[1])}
    far_gpu = at_the_second_cpu(gpu(GPU1, BRIDGE1, **far))
    both_nics = nic(**near) | at_the_second_cpu(nic("mlx5_1", NIC1, BRIDGE1, uverbs="uverbs1", **far))
    kinds = {
        "one-gpu": memories(*cpus) | gpu(**near) | both_nics,
        "far-gpu": memories(*cpus) | far_gpu | both_nics,
        "no-gpu": memories(*cpus),
        "new-kind": memories(*cpus) | far_gpu,
    }
    made = Nodes(tmp_path, kinds)
    yield made
    made.close()


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(STEERING)}
    return kept | {"PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}


def mpirun(nodes: Nodes, slots: dict[str, int], *words: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The output of the ranks of `waywiser run` on these nodes, and the lines of waywiser."""
    try:
        program = find_mpirun(None)
    except InputError as error:
        pytest.skip(str(error))
    hosts = ",".join(f"{nodes[name].address}:{count}" for name, count in slots.items())
    agent = str(nodes.agent())
    steering = {"OMPI_MCA_plm_rsh_agent": agent, "PRTE_MCA_plm_ssh_agent": agent, "OMPI_MCA_plm_rsh_no_tree_spawn": "1"}
    steering |= {"PRTE_MCA_plm_ssh_no_tree_spawn": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    steering |= {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = [program, "--host", hosts, "-n", str(sum(slots.values())), "--bind-to", "none"]
    done = subprocess.run(
        nodes.head.command([*command, *WAYWISER, "run", *words, sys.executable, "-c", SHOW]),
        env=environment() | steering, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    shown = [json.loads(line.removeprefix("rank ")) for line in done.stdout.splitlines() if line.startswith("rank ")]
    said = [line for line in done.stderr.splitlines() if line.startswith("waywiser: ")]
    return sorted(shown, key=lambda one: (one["host"], one["cpus"])), sorted(said)


def asked(node: Node, *words: str) -> str:
    done = subprocess.run(
        node.command([*WAYWISER, *words]), env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_rank_gets_what_is_known_about_its_kind(nodes: Nodes, cpus: tuple[int, int], tmp_path: Path) -> None:
    results = tmp_path / "results"
    values = {"one-gpu": "1000MBs", "far-gpu": "2000MBs", "no-gpu": "3000MBs"}
    prints = {one.name: json.loads(asked(one, "topology", "--format", "json"))["fingerprint"] for one in nodes}
    assert len(set(prints.values())) == len(prints)
    for name, value in values.items():
        label = "Simulated: not a measurement" if name == "no-gpu" else ""
        keep(results, Settings(prints[name], name, label, settings=(setting(value, not label),)))
    for name in values:
        exported = f"export UCX_POSIX_BW={values[name]}"
        assert (exported in asked(nodes[name], "env", "--results", str(results)).splitlines()) == (name != "no-gpu")

    slots = {"one-gpu": 1, "far-gpu": 1, "no-gpu": 2, "new-kind": 1}
    shown, said = mpirun(nodes, slots, "--accept-simulated", "--results", str(results))
    order, first, second = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [cpus[0]], [cpus[1]]
    assert shown == [
        order | {"host": "far-gpu", "cpus": second, "UCX_POSIX_BW": "2000MBs", "UCX_NET_DEVICES": "mlx5_1:1"},
        order | {"host": "new-kind", "cpus": second},
        {"host": "no-gpu", "cpus": first, "UCX_POSIX_BW": "3000MBs"},
        {"host": "no-gpu", "cpus": second, "UCX_POSIX_BW": "3000MBs"},
        order | {"host": "one-gpu", "cpus": first, "UCX_POSIX_BW": "1000MBs", "UCX_NET_DEVICES": "mlx5_0:1"},
    ]
    unknown, *simulated = said
    assert unknown == f"waywiser: new-kind: nothing is known about this machine ({prints['new-kind']}): binding only"
    assert simulated == [
        f"waywiser: rank {rank} on no-gpu: 1 simulated setting, not measured: UCX_POSIX_BW=3000MBs" for rank in (2, 3)
    ]
