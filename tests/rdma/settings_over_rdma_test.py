"""From two nodes to settings between them: tuned, applied, a wrong ucx.conf found, replaced and proved with Open MPI.

Host memory only: the guests have no GPU. The proof is about the transport: the packets that the RDMA device counts. It
is not about speed: here the CPU emulates the card, and the figures of speed mean nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from group_over_rdma_test import LARGEST_PACKET, ROOT, VERBS_ONLY, start_programs
from rdma_testbed.guest import Command, Guest
from rdma_testbed.two_guests import DEVICE, TwoGuests

HERE = Path(__file__).parent
RESULTS, AGENT, HOSTS = "/tmp/results", "/tmp/agent", "/tmp/hosts"
SHELL = [sys.executable, HERE / "shell_server.py"]
SHELL_PORT = "7711"
SIZE, LEAST_SENT = 12288, 10  # bytes of a ping-pong; the benchmark sends at least so many
COUNTER = f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters/sent_pkts"
WAYWISER = [sys.executable, "-c", "import sys; from waywiser.cli import main; sys.argv[0] = 'waywiser'; main()"]
BASE = {"PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1", **VERBS_ONLY}
PML = {"OMPI_MCA_pml": "ucx", "OMPI_MCA_pml_ucx_tls": "any", "OMPI_MCA_pml_ucx_devices": "any"}
OPEN_MPI = {
    "OMPI_MCA_plm_rsh_agent": AGENT,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "MPI4PY_LIBMPI": "/usr/lib/x86_64-linux-gnu/libmpi.so.40",
}
PREPARE = f"""
set -e
ln -sf mpirun.openmpi /usr/bin/mpirun
printf '#!/bin/sh\\nexec {" ".join(map(str, SHELL))} {SHELL_PORT} "$@"\\n' > {AGENT}
chmod 700 {AGENT}
printf '10.98.7.1\\n10.98.7.2\\n' > {HOSTS}
mkdir -p {RESULTS}/settings
"""
SEED = "mkdir -p /etc/ucx && echo UCX_TLS=tcp > /etc/ucx/ucx.conf"


@pytest.fixture
def nodes(link: TwoGuests) -> Iterator[TwoGuests]:
    """Both can start programs on the other; afterwards no file steers UCX."""
    for guest in link.guests:
        guest.run(["/bin/sh", "-c", PREPARE])
    server = link.guests[1].start([*SHELL, "10.98.7.2", SHELL_PORT], BASE, seconds=2400)
    server.wait_for_line("listening")
    yield link
    for guest in link.guests:
        guest.run(["rm", "-rf", "/etc/ucx/ucx.conf", RESULTS])


def waywiser(guest: Guest, *words: str, seconds: int = 200, **more: str) -> Command:
    return guest.start([*WAYWISER, *words], BASE | more, seconds).wait()


def ping_pong(nodes: TwoGuests, *before: str) -> int:
    """RDMA packets that guest 1 sends while an Open MPI job runs on both; `before`: words in front of its program."""
    guest = nodes.guests[0]
    mpirun = ["mpirun", "--host", "10.98.7.1:1,10.98.7.2:1", "--map-by", "node", "-n", "2"]
    told = [word for name in (*BASE, "MPI4PY_LIBMPI") for word in ("-x", name)]
    program = [sys.executable, ROOT / "python/waywiser/prove/mpi_benchmark.py", str(SIZE), "ping-pong"]
    sent = int(guest.run(["cat", COUNTER]).lines[0])
    done = guest.start([*mpirun, *told, *before, *program], BASE | OPEN_MPI | PML, seconds=300).wait()
    assert done.code == 0, done.errors
    answer = json.loads(done.lines[-1])
    assert answer["libmpi"].startswith("/usr/lib/x86_64-linux-gnu/"), answer
    return int(guest.run(["cat", COUNTER]).lines[0]) - sent


@pytest.mark.short
def test_the_environment_overrules_a_file(guests: TwoGuests) -> None:
    """UCX's own word for it; and this UCX knows the variables for the network."""
    guest = guests.guests[0]
    guest.run(["/bin/sh", "-c", SEED])
    try:
        told, overruled = (
            dict(line.split("=", 1) for line in guest.run(["ucx_info", "-c"], more).lines if "=" in line)
            for more in ({}, {"UCX_TLS": "all"})
        )
    finally:
        guest.run(["rm", "/etc/ucx/ucx.conf"])
    assert (told["UCX_TLS"], overruled["UCX_TLS"]) == ("tcp", "all")
    names = (
        "UCX_NET_DEVICES",
        "UCX_MAX_RNDV_RAILS",
        "UCX_IB_GPU_DIRECT_RDMA",
        "UCX_RNDV_FRAG_SIZE",
        "UCX_IB_GID_INDEX",
    )
    assert set(names) <= set(told)


@pytest.mark.short
def test_the_packets_of_the_card_are_counted(guests: TwoGuests) -> None:
    """By the counters with which `verify` proves the transport: this card counts packets, and no bytes."""
    guest = guests.guests[0]
    show = "print(*((*key, count) for key, count in read_counters(fresh()).packets.items()), sep='\\n')"
    lines = guest.run([sys.executable, "-c", f"from waywiser.monitor.counters import *; {show}"], BASE).lines
    (sent,) = guest.run(["cat", COUNTER]).lines
    assert f"('rdma', '{DEVICE}:1', 'sent', {sent})" in lines and len(lines) == 2, lines


@pytest.mark.timeout(3000)
def test_a_wrong_file_is_found_replaced_and_its_transport_proved(nodes: TwoGuests) -> None:
    first, second = nodes.guests
    ranks = start_programs(
        nodes, WAYWISER[1], WAYWISER[2], "tune", "--quick", "--budget", "90", "--output", RESULTS, seconds=400
    )
    for rank in ranks:
        assert rank.wait().code == 0, rank.errors
    profile = json.loads("\n".join(first.run(["cat", f"{RESULTS}/profile.json"]).lines))
    between = [one for one in profile["series"] if one["path"]["destination"].endswith(":host0")]
    assert between and all(point["verified"] for one in between for point in one["points"])

    applied = waywiser(first, "apply", "--for", "ucx,openmpi", "--output", RESULTS, "--json")
    assert applied.code == 0, applied.errors
    settings = json.loads("\n".join(applied.lines))
    assert settings["source"] == "measured" and settings["versions"]["ucx"].startswith("1.13.")
    why = {one["name"]: one["why"] for one in settings["left_out"]}
    assert why["UCX_IB_GPU_DIRECT_RDMA"] == "GPUDirect RDMA is unavailable: this machine has no GPU"
    assert why["UCX_GDR_COPY_BW"] == "GDRCopy is unavailable: this machine has no GPU"
    refused = waywiser(first, "run", "--require", "gdr,gdrcopy", "true")
    assert refused.code == 2
    assert "gdr is unavailable: D01: no NVIDIA GPU" in refused.errors
    assert "gdrcopy is unavailable: D06: no NVIDIA GPU" in refused.errors

    for guest in nodes.guests:
        guest.run(["/bin/sh", "-c", SEED])
    looked = waywiser(first, "doctor", "--only", "environment", "--json", "--alone")
    (finding,) = [one for one in json.loads("\n".join(looked.lines))["checks"] if one["id"] == "D34"]
    assert finding["status"] == "problem" and "UCX_TLS=tcp (/etc/ucx/ucx.conf) leaves out" in finding["found"]
    assert "rc_verbs" in finding["found"]

    shown = waywiser(first, "run", "--dry-run", "--output", RESULTS, "true")
    assert shown.code == 0 and any("UCX_TLS=all overrules a file" in line for line in shown.lines), shown.lines
    emitted = set(re.findall(r"\bUCX_[A-Z0-9_]+(?==)", "\n".join([*shown.lines, *waywiser(first, "env").lines])))
    known = {line.partition("=")[0] for line in first.run(["ucx_info", "-c"]).lines}
    assert "UCX_TLS" in emitted and emitted <= known

    file = f"{RESULTS}/settings/{settings['fingerprint']}.json"
    copy = "\n".join(first.run(["cat", file]).lines)
    second.run([sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write(sys.argv[2])", file, copy])
    assert ping_pong(nodes) == 0  # as the file has it
    assert ping_pong(nodes, *WAYWISER, "run", "--output", RESULTS) >= LEAST_SENT * SIZE / LARGEST_PACKET

    words = ["verify", "--with", "openmpi", "--hosts", HOSTS, "--baseline", "environment", "--quick", "--rounds", "4"]
    judged = waywiser(first, *words, "--output", RESULTS, "--json", seconds=1500, **(OPEN_MPI | PML))
    assert judged.code == 0, judged.errors
    answer = json.loads("\n".join(judged.lines))
    (step,) = answer["steps"]
    assert answer["benchmark"] == "openmpi 4.1.4 on 2 nodes" and set(step["verdicts"]) == {"waywiser run"}
    before, after = step["carried"]["as set now"], step["carried"]["waywiser run"]
    assert before["kinds"] == ["network"] and before["packets"].get("rdma", 0) == 0, before
    assert after["kinds"][0] == "rdma" and after["packets"]["rdma"] >= 4 * LEAST_SENT * SIZE / LARGEST_PACKET, after
    print(step["verdicts"]["waywiser run"], step["carried"])
