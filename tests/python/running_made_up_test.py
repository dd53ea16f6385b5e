"""`waywiser doctor --job` where NCCL, RDMA, NVLink or several machines are needed: made-up folders of /proc and /sys.
No job ran there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from doctor_machines import Files
from made_up_job import (
    CARD,
    FAST,
    GPUS,
    LIBMPI,
    LIBNCCL,
    LIBUCP,
    SLOW,
    TWO_GPUS,
    MadeJob,
    MadeRank,
    Peer,
    interfaces,
    look_at,
    nvlink,
    pcie,
)  # fmt: skip
from verb_runs import Run

from waywiser.look.finding import Status
from waywiser.running.fallbacks import FALL_BACKS, SWITCHED
from waywiser.running.mechanisms import mechanisms
from waywiser.running.shown import as_json, not_known, print_job

GIB = 1 << 30
TUNER = "/opt/waywiser/nccl/libnccl-tuner-waywiser.so"
SHARP = "/opt/hpcx/lib/libnccl-net.so"
HAS_COLLNET = {SHARP: b"\x7fELF..ncclNetPlugin_v8.ncclCollNetPlugin_v8."}
LOG = "n1:7:9 [0] NCCL INFO "
P2P, SHM = (LOG + f"Channel 00/0 : 0[0] -> 1[1] via {way}\n" for way in ("P2P/CUMEM", "SHM/direct/direct"))
RING = LOG + "Channel 00/0 : 0[0] -> 2[0] [send] via NET/IB/0/GDRDMA\n"
TOO_FEW = "Communicator has 1 nodes which is less than CollNet node threshold 2, disabling CollNet\n"
TREE = LOG + "CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA\n"
RAN = LOG + "AllReduce: 8388608 Bytes -> Algo {} proto SIMPLE channel{{Lo..Hi}}={{0..7}}\n"
MOVED = {**nvlink(2, 1 << 20), **pcie(2, GIB)}
NVLINK_STANDS, PCIE_MOVES = {**nvlink(2, 5), **pcie(2, 1 << 20)}, {**nvlink(2, 5), **pcie(2, GIB)}
COLLNET = {"NCCL_COLLNET_ENABLE": "1"}


def nccl(number: int = 2, peers: tuple[Peer, ...] = (), also: tuple[str, ...] = (), **variables: str) -> list[MadeRank]:
    """Ranks with NCCL, each with both GPUs open as CUDA does; only the first has connections of its own."""
    ranks = [MadeRank([LIBNCCL, *also], variables, open=GPUS) for _ in range(number)]
    ranks[0].peers = peers
    return ranks


def mpi(peers: tuple[Peer, ...] = (), open_: tuple[str, ...] = (), **variables: str) -> list[MadeRank]:
    ranks = [MadeRank([*LIBMPI, LIBUCP], variables, open=open_, shared=["ucx_shm_posix_1"]) for _ in range(2)]
    ranks[0].peers = peers
    return ranks


@dataclass
class Seeded:
    """`size`: ranks of the whole job, if some are elsewhere."""

    id: str
    says: str
    ranks: list[MadeRank]
    machine: Files = field(default_factory=dict)
    then: dict[str, str] = field(default_factory=dict)
    later: dict[str, str] | None = None
    size: int | None = None


def away(interface: str = SLOW, many: int = GIB) -> tuple[Peer, ...]:
    return (Peer(None, many, interface),)


SEEDED = [
    Seeded(
        "J01",
        "1 GiB by TCP over lo between ranks 0-1 of this machine: NCCL_SHM_DISABLE=1 forbids NCCL's shared memory",
        nccl(peers=(Peer(1, GIB // 2),), NCCL_SHM_DISABLE="1"),
    ),
    Seeded("J01", "in different ipc namespaces", [
        MadeRank([*LIBMPI], namespaces={"ipc": f"ipc:[{rank}]"}, peers=[Peer(1, GIB)] if rank == 0 else [])
        for rank in range(2)
    ]),
    Seeded("J02", "kernel.yama.ptrace_scope=2 forbids CMA", mpi(), {"/proc/sys/kernel/yama/ptrace_scope": "2"}),
    Seeded(
        "J04",
        "nothing by NVLink in 1 s: NCCL_P2P_DISABLE=1 switches off peer access between GPUs",
        nccl(NCCL_P2P_DISABLE="1"),
        TWO_GPUS,
        NVLINK_STANDS,
        PCIE_MOVES,
    ),
    Seeded(
        "J04",
        "NCCL's log has 2 connections via SHM/direct, none via P2P: NCCL_P2P_LEVEL=LOC",
        nccl(NCCL_P2P_LEVEL="LOC", NCCL_DEBUG_FILE="/tmp/nccl.%p.log"),
        {**TWO_GPUS, "/tmp/nccl.101.log": SHM, "/tmp/nccl.102.log": SHM},
    ),
    Seeded(
        "J05",
        "1 GiB by TCP over eth0 to other machines, nothing by mlx5_0:1, which is up: NCCL_IB_DISABLE=1",
        nccl(peers=(Peer(None, GIB // 2, SLOW),), NCCL_IB_DISABLE="1"),
        {**CARD, **interfaces(eth0=100_000)},
        size=4,
    ),
    Seeded(
        "J05",
        "UCX_TLS=tcp,sm,self switches off RDMA",
        mpi(away(), UCX_TLS="tcp,sm,self", OMPI_MCA_pml="ucx"),
        {**CARD, **interfaces(eth0=100_000)},
        size=4,
    ),
    Seeded(
        "J06",
        "over eth0 (1,000 Mb/s), where eth1 is up (100,000 Mb/s): NCCL_SOCKET_IFNAME=eth0",
        nccl(peers=away(), NCCL_SOCKET_IFNAME="eth0"),
        interfaces(eth0=1_000, eth1=100_000),
        size=4,
    ),
    Seeded("J07", "no rank has loaded a plug-in with CollNet", nccl(**COLLNET), size=4),
    Seeded(
        "J07",
        "NCCL's log has no connection via COLLNET: NCCL took its rings",
        nccl(also=(SHARP,), NCCL_DEBUG_FILE="/tmp/nccl.log", **COLLNET),
        {**HAS_COLLNET, "/tmp/nccl.log": RING},
        size=4,
    ),
    Seeded(
        "J07",
        "has no connection via COLLNET: Communicator has 1 nodes which is less than CollNet node threshold 2",
        nccl(also=(SHARP,), NCCL_DEBUG_FILE="/tmp/nccl.log", **COLLNET),
        {**HAS_COLLNET, "/tmp/nccl.log": P2P + LOG + TOO_FEW},
    ),
    Seeded(
        "J07",
        "none of 3 all-reduces ran by CollNet",
        nccl(also=(SHARP,), NCCL_DEBUG_FILE="/tmp/nccl.log", **COLLNET),
        {**HAS_COLLNET, "/tmp/nccl.log": TREE + 3 * RAN.format("RING")},
        size=4,
    ),
    Seeded("J08", f"NCCL_TUNER_PLUGIN={TUNER}; NCCL goes on without", nccl(NCCL_TUNER_PLUGIN=TUNER)),
    Seeded("J08", "NCCL_NET_PLUGIN=aws-ofi", nccl(NCCL_NET_PLUGIN="aws-ofi")),
    Seeded("J09", "NCCL is /opt/nccl/lib/libnccl.so.2 at rank 0; /old/libnccl.so.2 at rank 1", [
        MadeRank([LIBNCCL]), MadeRank(["/old/libnccl.so.2"])
    ]),
    Seeded("J11", "NCCL_NET_GDR_LEVEL=LOC switches off GPUDirect RDMA", nccl(NCCL_NET_GDR_LEVEL="LOC")),
]  # fmt: skip


def look(folder: Path, one: Seeded) -> tuple[Any, Any]:
    return look_at(folder, MadeJob(one.ranks, one.size), one.machine, one.then, one.later)


@pytest.mark.parametrize("one", SEEDED, ids=lambda one: f"{one.id}: {one.says[:40]}")
def test_a_seeded_fall_back_is_named_and_no_other(tmp_path: Path, one: Seeded) -> None:
    _, found = look(tmp_path, one)
    assert [each.id for each in found if each.finding.status is not Status.unknown] == [one.id]
    assert one.says in found[0].finding.text


HEALTHY = {
    "NCCL over NVLink": Seeded("", "", nccl(peers=(Peer(1, 4096),)), TWO_GPUS, {**nvlink(2, 5), **pcie(2, 1)}, MOVED),
    "NCCL whose log has P2P": Seeded(
        "", "", nccl(NCCL_DEBUG_FILE="/tmp/%h.log"), {**TWO_GPUS, "/tmp/node1.log": P2P + SHM}
    ),
    "switches that add": Seeded(
        "",
        "",
        nccl(also=(SHARP,), NCCL_DEBUG_FILE="/tmp/nccl.log", **COLLNET),
        {**HAS_COLLNET, "/tmp/nccl.log": TREE + RING + RAN.format("RING") + RAN.format("COLLNET_DIRECT")},
        size=4,
    ),
    "a tuner that is loaded": Seeded("", "", nccl(also=(TUNER,), NCCL_TUNER_PLUGIN=TUNER)),
    "UCX between machines over RDMA": Seeded(
        "", "", mpi(away(many=1 << 20), ("/dev/infiniband/uverbs0",)), {**CARD, **interfaces(eth0=1_000)}, size=4
    ),
    "files of a store on another machine": Seeded(
        "", "", nccl(peers=(Peer(None, GIB, SLOW, 443),)), {**CARD, **interfaces(eth0=1_000, eth1=100_000)}, size=4
    ),
    "TCP over the fast interface": Seeded("", "", nccl(peers=away(FAST)), interfaces(eth0=1_000, eth1=100_000), size=4),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_named_where_all_is_well(tmp_path: Path, name: str) -> None:
    _, found = look(tmp_path, HEALTHY[name])
    assert [each.finding.text for each in found] == []


def test_every_fall_back_of_the_table_is_seeded() -> None:
    of_real_jobs = {"J03", "J10"}  # running_jobs_test.py
    table = {one.id for one in (*FALL_BACKS, SWITCHED)}
    assert {one.id for one in SEEDED} | of_real_jobs == table
    assert len(table) == len(FALL_BACKS) + 1


def test_what_cannot_be_seen_is_said_to_be_unknown(tmp_path: Path) -> None:
    one = Seeded("", "", nccl(peers=away(), also=(SHARP,), **COLLNET), {**HAS_COLLNET, **interfaces(eth1=100)}, size=4)
    seen, found = look(tmp_path, one)
    assert {each.id for each in found} == {"J06", "J07"}
    assert all(each.finding.status is Status.unknown for each in found)
    told = "\n".join(not_known(seen, found))
    assert "needs the speed of eth0" in told and "that it is taken only a log says" in told
    assert "2 of 4 ranks run on other machines: ask there too" in told and "which transport NCCL took" in told


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (
            Seeded("J04", "", nccl(), TWO_GPUS, NVLINK_STANDS, PCIE_MOVES),
            "copies between host and GPU, or no peer access",
        ),
        (
            Seeded("J05", "", [MadeRank([LIBNCCL], open=["/dev/infiniband/uverbs0"], peers=away())], CARD, size=4),
            "whether it went to ranks",
        ),
    ],
)
def test_what_may_have_another_reason_is_unknown(tmp_path: Path, one: Seeded, says: str) -> None:
    _, found = look(tmp_path, one)
    assert [(each.id, each.finding.status) for each in found] == [(one.id, Status.unknown)]
    assert says in found[0].finding.text


def test_what_is_connected_between_the_looks_is_seen(tmp_path: Path) -> None:
    before, job = MadeJob(nccl()), MadeJob(nccl(peers=(Peer(1, GIB),), NCCL_SHM_DISABLE="1"))
    seen, found = look_at(tmp_path, job, before=before)
    assert [each.id for each in found] == ["J01"] and {flow.peer for flow in seen.flows} == {0, 1}


def test_bytes_and_their_source_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = Seeded("", "", nccl(peers=(Peer(1, GIB),)), TWO_GPUS, {**nvlink(2, 5), **pcie(2, 1)}, MOVED)
    seen, found = look(tmp_path, one)
    rows = {row.mechanism: row for row in mechanisms(seen)}
    assert (rows["TCP over lo"].bytes, rows["TCP over lo"].between) == (2 * GIB, "ranks 0 and 1")
    assert rows["NVLink"].bytes == 4 * ((1 << 20) - 5) * 1024 and rows["NVLink"].counted == "machine"
    value = json.loads(as_json(seen, found))
    assert [rank["libraries"] for rank in value["here"]] == [{"NCCL": LIBNCCL}] * 2
    print_job(seen, found)
    told = capsys.readouterr().out
    assert "2 ranks of torchrun here" in told and "2 GiB" in told and "the machine" in told


def test_a_folder_in_place_of_the_machine(tmp_path: Path, run: Run) -> None:
    look_at(tmp_path, MadeJob(nccl(peers=(Peer(1, GIB),), NCCL_SHM_DISABLE="1")))
    code, out, _ = run("doctor", "--job", "101", "--root", str(tmp_path / "0"), "--json")
    assert code == 2 and [one["id"] for one in json.loads(out)["fall_backs"]] == ["J01"]
