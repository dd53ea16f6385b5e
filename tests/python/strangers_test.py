"""Attacks by a host that reaches a machine of a job: no effect within a machine, no wrong sum between machines."""

from __future__ import annotations

import ast
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rank_jobs import COMMAND, finish, run, runtime_folder, start
from two_machines import TwoMachines, ip

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow

# Addresses at which this process accepts connections from all hosts, by any protocol.
LISTENS = """
def listens():
    mine = {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")
            if os.path.islink(f"/proc/self/fd/{name}")}
    found = []
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in open(f"/proc/self/net/{kind}").read().splitlines()[1:]:
            words = line.split()
            if (words[3] == "0A" or kind.startswith("udp")) and f"socket:[{words[9]}]" in mine:
                found.append((kind, words[1]))
    return found
"""


@pytest.mark.faults("strangers X")
def test_a_job_of_one_machine_listens_on_no_network() -> None:
    code, out, err = run(2, LISTENS + "group.all_reduce(np.ones(100000)); print(listens())")
    assert (code, out) == (0, ["[]", "[]"]), err


def test_a_program_alone_listens_on_no_network() -> None:
    program = "import os, waywiser as ww\ngroup = ww.join()\n" + LISTENS + "print(listens())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.faults("strangers X")
def test_memory_is_shared_with_this_user_only() -> None:
    code = """
    group.all_reduce(np.ones(100000))
    lines = [line.split() for line in open("/proc/sysvipc/shm").read().splitlines()[1:]]
    print([line[2] for line in lines if int(line[4]) == os.getpid()])
    """
    assert run(2, code)[:2] == (0, ["[]", "[]"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees the files behind mapped memory")
@pytest.mark.faults("strangers X")
def test_shared_memory_with_a_name_is_of_its_owner_only() -> None:
    """Other shared memory has no name: only who may debug the process reaches it."""
    code = """
    group.all_reduce(np.ones(100000))
    maps = [line.split() for line in open("/proc/self/maps").read().splitlines()]
    files = [words[0] for words in maps if words[1].endswith("s") and "/dev/shm/" in " ".join(words[5:])]
    print(len(files) > 0, {oct(os.stat(f"/proc/self/map_files/{name}").st_mode & 0o777) for name in files})
    group.barrier()
    """
    assert run(2, code)[:2] == (0, ["True {'0o600'}"] * 2)


def test_what_the_user_says_to_ucx_wins_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UCX_TLS", "tcp,self,sm")
    code, out, err = run(2, LISTENS + "print(len(listens()) > 0)", "--plain")
    assert (code, out) == (0, ["True", "True"])
    assert err == "waywiser: UCX_TLS=tcp,self,sm lets UCX listen on networks, which this job does not need\n"


@pytest.mark.faults("strangers K")
def test_nothing_of_a_killed_job_stays(runtime_folder: Path) -> None:
    process = start(
        "run", "-n", "3", sys.executable, "-c", "import waywiser as ww, time; group = ww.join(); time.sleep(600)"
    )
    deadline = time.monotonic() + 60
    while len(list(runtime_folder.glob("rank-*.sock")) if runtime_folder.exists() else []) < 3:
        assert time.monotonic() < deadline, "the ranks have no sockets"
        time.sleep(0.02)
    ranks = [int(path.name.split("-")[1]) for path in runtime_folder.glob("rank-*.sock")]
    for rank in ranks:
        os.kill(rank, signal.SIGKILL)
    finish(process)
    assert len(list(runtime_folder.iterdir())) == 3
    assert run(1, "print(group.size)")[:2] == (0, ["1"])
    assert list(runtime_folder.iterdir()) == []


def test_without_libcrypto_ranks_of_a_machine_know_each_other_and_others_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WAYWISER_LIBCRYPTO", "/nowhere/libcrypto.so.3")
    code, out, err = run(2, "print(group.all_reduce(np.ones(2))[0])")
    assert (code, out) == (0, ["2.0", "2.0"]), err
    variables = {"WAYWISER_RANK": "0", "WAYWISER_SIZE": "2", "WAYWISER_LOCAL_SIZE": "1", "WAYWISER_SECRET": "s" * 16}
    done = subprocess.run(
        [sys.executable, "-c", "import waywiser as ww; ww.join()"],
        env=os.environ | variables | {"WAYWISER_ROOT": "127.0.0.1:1", "WAYWISER_MACHINE": "a"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "prove to each other that they are of one job: /nowhere/libcrypto.so.3" in done.stderr.splitlines()[-1]


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[TwoMachines]:
    made = TwoMachines()
    yield made
    made.close()


# Rank 1 comes to the second sum when the stranger has been.
VICTIM = """
import os, sys, time, numpy as np, waywiser as ww
group = ww.join(timeout=60)
print(group.rank, np.unique(group.all_reduce(np.full(4000, 1.0))), flush=True)
if group.rank == 0:
    open(sys.argv[1], "w").write(str(os.getpid()))
while group.rank == 1 and not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
print(group.rank, np.unique(group.all_reduce(np.full(4000, 1.0))), flush=True)
"""

# UCX's first bytes on a TCP connection, then a message that is matched by its tag.
STRANGER = """
import json, socket, sys, time
for port, data in json.load(sys.stdin):
    try:
        with socket.create_connection(("10.99.7.1", port), timeout=10) as line:
            line.settimeout(0.5)
            line.sendall(bytes.fromhex(data))
            while line.recv(4096):
                pass
    except OSError:  # it does not listen on this network, or has had enough
        pass
"""


MAGIC = struct.pack("<Q", 0xCAFEBABE12345678)  # of UCX, on a connection of TCP


def message(group: int, collective: int, source: int, label: int, call: int, values: bytes) -> bytes:
    """As in src/waywiser/comm/message/tag.hpp."""
    tag = group << 52 | collective << 51 | source << 36 | label << 20 | call
    body = struct.pack("<Q", tag) + values
    return struct.pack("<BI", 2, len(body)) + body


def predicted() -> bytes:
    """The bytes that rank 1 would send in each of the first sums of float64."""
    sums = 11 << 15 | 0 << 11 | 0xFF
    values = struct.pack("<d", 41.0) * 4000
    return MAGIC + b"".join(message(0, 1, 1, label, sums, values) for label in range(6))


def ports_of(machines: TwoMachines, process: int) -> list[int]:
    """The ports at which a process of the first machine listens."""
    told = ip("netns", "exec", machines.names[0], "ss", "-Hltnp").stdout
    return [int(line.split()[3].rpartition(":")[2]) for line in told.splitlines() if f"pid={process}," in line]


def visited(machines: TwoMachines, folder: Path, words: list[bytes]) -> tuple[int, str, str]:
    """Exit code, output and errors of a job that a stranger has said these words to, at each port of rank 0."""
    program, ready, go = folder / "victim.py", folder / "ready", folder / "go"
    program.write_text(VICTIM)
    hosts, ssh = machines.hosts_and_ssh(folder)
    command = [*COMMAND, "run", "-n", "2", "--plain", "--hosts", str(hosts), "--ssh", str(ssh)]
    command += [sys.executable, str(program), str(ready), str(go)]
    environment = os.environ | {"WAYWISER_UCX_TLS": "tcp,self"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        deadline = time.monotonic() + 60
        while not (ready.exists() and ready.read_text()):
            assert time.monotonic() < deadline and job.poll() is None, job.communicate()
            time.sleep(0.02)
        ports = ports_of(machines, int(ready.read_text()))
        assert ports, "rank 0 listens nowhere"
        said = [(port, one.hex()) for port in ports for one in words]
        stranger = ["ip", "netns", "exec", machines.names[1], sys.executable, "-c", STRANGER]
        subprocess.run(stranger, input=json.dumps(said), text=True, check=False, timeout=60, capture_output=True)
        go.touch()
        out, err = job.communicate(timeout=100)
    return job.returncode, out, err


@pytest.mark.faults("strangers B")
def test_a_message_that_a_stranger_makes_is_no_part_of_a_sum(machines: TwoMachines, tmp_path: Path) -> None:
    code, out, err = visited(machines, tmp_path, [predicted()])
    assert (code, sorted(out.splitlines())) == (0, ["0 [2.]", "0 [2.]", "1 [2.]", "1 [2.]"]), err


@pytest.mark.faults("strangers B")
def test_any_bytes_leave_the_sum_right_or_are_an_error_that_names_the_rank(
    machines: TwoMachines, tmp_path: Path
) -> None:
    chance = random.Random(4711)
    words = [chance.randbytes(size) for size in (8, 5000)] + [MAGIC, MAGIC + chance.randbytes(5000)]
    code, out, err = visited(machines, tmp_path, words)
    sums = {line.partition(" ")[2] for line in out.splitlines()}
    assert sums == {"[2.]"}, out
    if code != 0:
        assert "rank 0 (process" in err, err


@pytest.mark.faults("strangers B")
def test_a_rank_that_ucx_ends_on_a_strangers_bytes_is_named_with_the_probable_cause(
    machines: TwoMachines, tmp_path: Path
) -> None:
    words = MAGIC + b"".join(struct.pack("<BI", kind, 0) for kind in range(32))
    code, out, err = visited(machines, tmp_path, [words])
    assert {line.partition(" ")[2] for line in out.splitlines()} == {"[2.]"}
    if code == 0:
        pytest.skip("this UCX bears it")
    assert code == 134
    line = next(line for line in err.splitlines() if line.startswith("waywiser: rank 0 (process"))
    assert "unknown hosts send bytes" in line, err


def test_ucx_listens_on_the_network_of_the_root_only(tmp_path: Path) -> None:
    machines = TwoMachines(links=2)
    try:
        program = "import os, waywiser as ww\ngroup = ww.join(timeout=60)\n" + LISTENS + "print(listens())"
        ranks = [machines.start(rank, 2, ["-c", program], WAYWISER_RUNTIME_DIR=str(tmp_path)) for rank in range(2)]
        for number, process in enumerate(ranks, 1):
            out, err = process.communicate(timeout=100)
            assert process.returncode == 0, err
            address = socket.inet_aton(f"10.99.7.{number}")[::-1].hex().upper()
            where = {place.partition(":")[0] for _, place in ast.literal_eval(out)}
            assert where == {address}, out
    finally:
        machines.close()
