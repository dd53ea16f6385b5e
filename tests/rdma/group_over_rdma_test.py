"""Groups of two ranks, one in each machine, whose UCX has verbs only."""

from __future__ import annotations

import itertools
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rdma_testbed.guest import Command, Guest
from rdma_testbed.two_guests import DEVICE, TwoGuests

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SYSTEM_UCX = "/usr/lib/x86_64-linux-gnu/libucp.so.0"
PORTS = itertools.count(23500)  # a recently used port may still be taken
TIMEOUT = 6
LARGEST_PACKET = 4096  # without headers
TCP = "network-tcp"
VERBS_ONLY = {"WAYWISER_LIBUCP": SYSTEM_UCX, "UCX_IB_GID_INDEX": "0"}
FEW = "Window.PutsHaveArrivedAfterAFlush:Window.ASignalThatNeverComes:Group.MessagesOfOneTag*"
MANY = "Group.*:Window.*:GroupCollectives.*-Group.SlicesBeyond32Bits"  # for which a guest has too little memory


def start_programs(guests: TwoGuests, program: str, *arguments: str, seconds: int = 150, **more: str) -> list[Command]:
    variables = {
        "WAYWISER_SIZE": "2",
        "WAYWISER_LOCAL_SIZE": "1",
        "WAYWISER_ROOT": f"10.98.7.1:{next(PORTS)}",
        "WAYWISER_SECRET": "a secret of this very test",
        "PYTHONPATH": str(ROOT / "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    variables |= VERBS_ONLY | more
    file = program if program.startswith("-") else HERE / program
    return [
        guest.start([sys.executable, file, *arguments], variables | {"WAYWISER_RANK": str(rank)}, seconds=seconds)
        for rank, guest in enumerate(guests.guests)
    ]


def start_ranks(guests: TwoGuests, transport: str, **more: str) -> list[Command]:
    ranks = start_programs(guests, "rank.py", WAYWISER_UCX_TLS=f"{transport},self", **more)
    for rank in ranks:
        rank.wait_for_line("joined")
    return ranks


def tell(ranks: list[Command], verb: str, answer: str) -> list[str]:
    for rank in ranks:
        rank.tell(verb)
    return [rank.wait_for_line(answer) for rank in ranks]


def numbers(guest: Guest, *files: str) -> list[int]:
    return [int(line) for line in guest.run(["cat", *files]).lines]


def packets_and_bytes(guests: TwoGuests) -> list[int]:
    """Packets that the first guest's Soft-RoCE device has sent, and bytes that left on its link."""
    counters = f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters"
    return numbers(guests.guests[0], f"{counters}/sent_pkts", "/sys/class/net/eth0/statistics/tx_bytes")


def check_calls(guests: TwoGuests, ranks: list[Command], largest: int) -> None:
    """The data are right, and have crossed the link as packets of RDMA."""
    before = packets_and_bytes(guests)
    sent = int(tell(ranks, f"calls {largest}", "intact")[0].split()[1])
    packets, all_bytes = (after - earlier for after, earlier in zip(packets_and_bytes(guests), before, strict=True))
    assert packets > sent / LARGEST_PACKET
    assert all_bytes > sent


def check_errors(ranks: list[Command], begun: float) -> str:
    """Both ranks have ended with an error that names the other one, in time."""
    for number, rank in enumerate(ranks):
        rank.wait()
        assert rank.code == 3, f"rank {number} ended with {rank.code}: {rank.lines} {rank.errors}"
        assert f"rank {1 - number}" in rank.lines[-1]
    assert time.monotonic() - begun < TIMEOUT + 10
    print(f"{time.monotonic() - begun:.1f} s: {ranks[0].lines[-1]}")
    return ranks[0].lines[-1]


@pytest.mark.short
def test_every_call_over_rc(link: TwoGuests) -> None:
    """In every CI, also where guests are slow: messages of up to 300 kB, all collectives, packets counted."""
    ranks = start_ranks(link, "rc", WAYWISER_TIMEOUT="120")
    check_calls(link, ranks, 0)


@pytest.mark.parametrize("transport", ["rc", "ud"])
def test_every_call_until_the_cable_is_pulled(link: TwoGuests, transport: str) -> None:
    ranks = start_ranks(link, transport)
    check_calls(link, ranks, 4_000_000)

    link.shape("loss", "1%", "delay", "1ms")
    check_calls(link, ranks, 1_000_000)
    statistics = "\n".join(link.guests[0].run(["tc", "-s", "qdisc", "show", "dev", "eth0"]).lines)
    dropped = re.search(r"dropped (\d+)", statistics)
    assert dropped, statistics
    assert int(dropped[1]) > 0, statistics
    link.shape()

    tell(ranks, f"messages {TIMEOUT}", "under way")
    link.pull_cable()
    assert "is gone" in check_errors(ranks, time.monotonic())


@pytest.mark.parametrize("transport", ["rc", "ud"])
def test_rdma_packets_vanish(link: TwoGuests, transport: str) -> None:
    """The ranks still hear of each other by TCP; Soft-RoCE itself tries for ever."""
    ranks = start_ranks(link, transport)
    tell(ranks, f"messages {TIMEOUT}", "under way")
    link.drop_rdma()
    assert "waited 6.00 s" in check_errors(ranks, time.monotonic())


def test_rdma_gives_up(link: TwoGuests) -> None:
    """After few attempts, as real network cards do."""
    ranks = start_ranks(link, "rc", UCX_RC_RETRY_COUNT="3", UCX_RC_TIMEOUT="100ms")
    tell(ranks, f"messages {TIMEOUT}", "under way")
    link.drop_rdma()
    # The rank that sees it first tells the other one.
    assert re.search(r"the connection to rank [01] broke", check_errors(ranks, time.monotonic()))


def test_no_connection(link: TwoGuests) -> None:
    ranks = start_ranks(link, "rc")
    link.drop_rdma()
    tell(ranks, f"messages {TIMEOUT}", "error")
    check_errors(ranks, time.monotonic())


def plan_by_size(short: str, long: str) -> dict[str, Any]:
    """Transports up to 128 KiB and from there on."""
    rows = []
    for sizes, transports in (((0, (1 << 17) - 1), short), ((1 << 17, 1 << 60), long)):
        device = "eth0/eth0" if transports == TCP else f"{DEVICE}:1/{DEVICE}:1"
        key = {
            "operation": "latency",
            "pairs": [["host0", "other:host0"]],
            "processes": 2,
            "rail": "",
            "encrypted": False,
        }
        row = {**key, "from_bytes": sizes[0], "to_bytes": sizes[1], "expected": [], "why": "made up"}
        row["ways"] = [{"way": f"ucx(device={device},transports={transports})", "ratio": 1}]
        rows.append(row)
    about = {"fingerprint": "a", "machine": "a", "backend": "host", "simulated": False, "other_nodes": []}
    return {"schema": "waywiser.plan", "version": 3, **about, "rows": rows}


@pytest.mark.parametrize(("short", "long"), [(TCP, "rc"), (TCP, "ud"), ("rc", TCP)])
def test_long_messages_take_the_road_of_the_plan(link: TwoGuests, short: str, long: str, tmp_path: Path) -> None:
    """Until the cable is pulled in one of them. By itself UCX takes RDMA for long ones in all three."""
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(plan_by_size(short, long)))
    ranks = start_programs(link, "rank.py", WAYWISER_PLAN=str(plan))
    for rank in ranks:
        rank.wait_for_line("joined")
    if long == TCP:
        before = packets_and_bytes(link)
        sent = int(tell(ranks, "calls 4000000", "intact")[0].split()[1])
        packets, all_bytes = (after - earlier for after, earlier in zip(packets_and_bytes(link), before, strict=True))
        assert packets < sent / LARGEST_PACKET / 2 < all_bytes / LARGEST_PACKET
    else:
        check_calls(link, ranks, 4_000_000)
    tell(ranks, f"messages {TIMEOUT}", "under way")
    link.pull_cable()
    check_errors(ranks, time.monotonic())


@pytest.mark.timeout(1600)
@pytest.mark.parametrize("tests", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_tests_of_the_group_in_each_machine(guests: TwoGuests, tests: str) -> None:
    """rc in one machine, ud in the other; messages and one-sided calls from a device to itself."""
    program = [ROOT / "build/waywiser_tests", "--gtest_brief=1", f"--gtest_filter={tests}"]
    with_verbs = [VERBS_ONLY | {"WAYWISER_UCX_TLS": f"{transport},self"} for transport in ("rc", "ud")]
    started = [
        guest.start(program, variables, seconds=1500)  # without KVM
        for guest, variables in zip(guests.guests, with_verbs, strict=True)
    ]
    for ended in [command.wait() for command in started]:
        assert ended.code == 0, "\n".join(ended.lines) + ended.errors


WHY_NO_KERNEL_TLS = "from waywiser import _core; print(_core.why_no_tls() or _core.why_no_kernel_tls())"


@pytest.mark.parametrize("kernel", [pytest.param("0", marks=pytest.mark.short), "1"])
def test_an_encrypted_job_takes_no_rdma(link: TwoGuests, kernel: str) -> None:
    """TLS over TCP, by OpenSSL or by the guests' kernel, until the cable is pulled."""
    if kernel == "1":
        command = [sys.executable, "-c", WHY_NO_KERNEL_TLS]
        why_not = link.guests[0].run(command, {"PYTHONPATH": str(ROOT / "python")}).lines[0]
        if why_not:
            pytest.skip(f"in the guest: {why_not}")
    ranks = start_programs(link, "rank.py", WAYWISER_ENCRYPT="1", WAYWISER_KERNEL_TLS=kernel, WAYWISER_TIMEOUT="120")
    for rank in ranks:
        rank.wait_for_line("joined")
    packets, tx_bytes = packets_and_bytes(link)
    sent = int(tell(ranks, "calls 4000000", "intact")[0].split()[1])
    packets_after, tx_bytes_after = packets_and_bytes(link)
    assert packets_after == packets
    assert tx_bytes_after - tx_bytes > sent
    by = ["openssl", "kernel"][int(kernel)]
    assert tell(ranks, "encrypted", "encrypted") == [f"encrypted by {by}"] * 2
    tell(ranks, f"messages {TIMEOUT}", "under way")
    link.pull_cable()
    assert "is gone" in check_errors(ranks, time.monotonic())


def test_the_road_between_the_machines_is_measured(guests: TwoGuests) -> None:
    first, second = (rank.wait() for rank in start_programs(guests, "measure.py", "60"))
    assert first.code == 0, first.errors
    assert second.code == 0, second.errors
    for transport in ("rc", "ud", "network-tcp", "tls-openssl", "tls-kernel"):
        assert f"measured {transport} latency True" in first.lines, first.lines
    assert any(line.startswith("unavailable dc ") for line in first.lines), first.lines
