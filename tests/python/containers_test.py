"""Ranks of one machine in containers: each in namespaces of its own, and with little room in /dev/shm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from doctor_namespaces_test import unshared
from rank_jobs import runtime_folder  # noqa: F401

pytestmark = pytest.mark.slow
# Every way of carrying bytes, with results that are checked.
PROGRAM = """
import numpy as np, waywiser as ww
group = ww.join(timeout=60)
rank, size = group.rank, group.size
right, left = (rank + 1) % size, (rank - 1) % size
for count in (1, 1_000, 60_000):
    assert (group.all_reduce(np.full(count, rank + 1.0)) == size * (size + 1) / 2).all(), count
    gathered = group.all_gather(np.full(count, float(rank)))
    assert (gathered.reshape(size, -1) == np.arange(size)[:, None]).all(), count
for count in (1, 500, 5_000, 1_000_000):
    got = group.sendrecv(np.full(count, float(rank)), right, np.empty(count), left)
    assert (got == left).all(), count
window = group.expose(np.zeros(50_001))
group.put(np.full(50_000, rank + 1.0), window, right, 8)
group.flush()
group.signal(window, right, 0, 1)
group.wait(window, 0, 1)
assert (np.asarray(window.array)[1:] == left + 1).all()
heap = ww.Heap(group, "ghosts", 4096)
heap.put(np.full(100, rank + 1.0), right, 64)
heap.signal(right, 0, 1)
heap.wait(0, 1, source=left)
assert (heap.array(100, float, 64) == left + 1).all()
group.barrier()
print("right")
"""
MACHINE = {"user": "-Ur", "mount": "-m", "PID": "-p", "IPC": "-i", "network": "-n"}
SPLIT, IPC = "do not reach each other's memory", "are in two IPC namespaces"
# Namespaces of each rank's own, and why TCP over loopback carries messages; "": shared memory does.
ALONE = [
    ("mount", ""),
    ("network", ""),
    ("mount network", ""),
    ("IPC", IPC),
    ("mount IPC", IPC),
    ("user", SPLIT),
    ("PID", SPLIT),
    ("user mount", SPLIT),
    ("user PID", SPLIT),
    ("user IPC", SPLIT),
    ("user mount PID IPC", SPLIT),
]
# Each way to carry bytes with four ranks too; the others with four where there is time.
OF_FOUR = ("mount", "IPC", "user mount PID IPC")


def command(namespaces: str) -> list[str]:
    """The beginning of a command in new namespaces."""
    flags = [MACHINE[name] for name in namespaces.split()]
    if "PID" in namespaces:
        flags += ["--fork", "--kill-child", *(["--mount-proc"] if "mount" in namespaces else [])]
    return unshared(*flags) if flags else []


Seen = list[tuple[int, str, str]]  # of each rank: exit code, output, errors


def job(containers: list[tuple[str, int]], setup: str = ":", code: str = PROGRAM, **more: str) -> Seen:
    """A job in containers: the namespaces of each and the number of its ranks. `setup` is done first in each."""
    size = sum(ranks for _, ranks in containers)
    variables = {"WAYWISER_SIZE": str(size), "WAYWISER_LOCAL_SIZE": str(size), "WAYWISER_JOB": os.urandom(8).hex()}
    processes: list[subprocess.Popen[str]] = []
    first = 0
    for namespaces, ranks in containers:
        start = 'WAYWISER_RANK=$1 WAYWISER_LOCAL_RANK=$1 "$PYTHON" -c "$CODE" >$1.out 2>$1.err; echo $? >$1.code'
        each = "".join(f"run {rank} &\n" for rank in range(first, first + ranks))
        words = [*command(namespaces), "sh", "-c", f"run() {{ {start}; }}\n{setup} || exit 1\n{each}wait"]
        variables |= {"PYTHON": sys.executable, "CODE": code}
        processes.append(subprocess.Popen(words, env=os.environ | variables | more, text=True))
        first += ranks
    assert [process.wait(timeout=110) for process in processes] == [0] * len(containers)
    found = [[Path(f"{rank}.{what}").read_text() for what in ("code", "out", "err")] for rank in range(size)]
    return [(int(code), out, err) for code, out, err in found]


def expect_right(seen: Seen, why: str) -> None:
    assert [(code, out) for code, out, _ in seen] == [(0, "right\n")] * len(seen), seen
    said = [err for _, _, err in seen if err]
    if not why:
        assert said == []
    else:  # once, by one rank
        assert len(said) == 1 and said[0].count("\n") == 1, said
        assert why in said[0] and "TCP over loopback carries messages" in said[0]


@pytest.mark.parametrize(
    ("namespaces", "why", "ranks"),
    [
        pytest.param(*each, ranks, id=f"{each[0].replace(' ', '-')}-{ranks}",
                     marks=() if ranks == 2 or each[0] in OF_FOUR else pytest.mark.long)
        for each in ALONE for ranks in (2, 4)
    ],
)  # fmt: skip
def test_each_rank_in_namespaces_of_its_own(namespaces: str, why: str, ranks: int) -> None:
    expect_right(job([(namespaces, 1)] * ranks), why)


def test_two_containers_of_two_ranks() -> None:
    expect_right(job([("user", 2), ("user mount", 2)]), SPLIT)


def test_one_rank_outside_the_container_of_the_others() -> None:
    expect_right(job([("", 1), ("user", 2)]), SPLIT)


@pytest.mark.parametrize("mailbox", ["off", "short"])
def test_without_mailboxes(mailbox: str) -> None:
    expect_right(job([("user", 1)] * 2, WAYWISER_MAILBOX=mailbox), SPLIT)


@pytest.mark.parametrize("namespaces", ["PID network", "user network", "IPC network"])
def test_neither_memory_nor_network_is_shared(namespaces: str) -> None:
    for code, out, err in job([(namespaces, 1)] * 2):
        assert (code, out) == (1, "")
        last = err.splitlines()[-1]
        assert last.startswith("waywiser.UnavailableError: ranks 0 and 1 on ") and "in two network namespaces" in last
        assert "WAYWISER_ROOT=HOST:PORT" in last


def test_transports_that_leave_out_what_is_needed_are_named() -> None:
    for code, _, err in job([("user", 1)] * 2, UCX_TLS="self,sm"):
        assert code == 1 and "UCX_TLS=self,sm leaves out TCP" in err.splitlines()[-1], err


SHM = "mount -t tmpfs -o size={size} tmpfs /dev/shm"
NO_ROOM = "TCP over loopback carries messages"


@pytest.mark.parametrize(
    "setup",
    [
        SHM.format(size="1m"),
        SHM.format(size="20m"),
        SHM.format(size="64m") + " && head -c 60m /dev/zero >/dev/shm/full",
        SHM.format(size="64m") + " && mount -o remount,ro /dev/shm",
        SHM.format(size="64m,nr_inodes=1"),
        "mount --bind /proc/self/fdinfo /dev/shm",
    ],
    ids=["tiny", "small", "full", "read-only", "no-inodes", "no-tmpfs"],
)
def test_no_room_in_dev_shm(setup: str) -> None:
    seen = job([("mount", 4)], setup=setup)
    assert [(code, out) for code, out, _ in seen] == [(0, "right\n")] * 4, seen
    assert all(err == "" for _, _, err in seen[1:])
    assert seen[0][2].count("\n") == 1 and "/dev/shm on " in seen[0][2] and NO_ROOM in seen[0][2]
    assert " bytes free and UCX needs " in seen[0][2] and "--shm-size=" in seen[0][2]


def test_dockers_default_takes_sixteen_ranks() -> None:
    code = """
import numpy, waywiser
assert waywiser.join().all_reduce(numpy.ones(8))[0] == 16
print("right")
"""
    seen = job([("mount", 16)], setup=SHM.format(size="64m"), code=code)
    assert [(code, out) for code, out, _ in seen] == [(0, "right\n")] * 16, seen
    assert NO_ROOM in seen[0][2]


def test_room_enough_is_used_without_a_word() -> None:
    expect_right(job([("mount", 4)], setup=SHM.format(size="64m")), "")


def test_a_user_who_insists_on_dev_shm_is_refused_in_one_line() -> None:
    for code, _, err in job([("mount", 2)], setup=SHM.format(size="1m"), UCX_TLS="self,posix"):
        assert code == 1 and "waywiser.UnavailableError: /dev/shm on " in err.splitlines()[-1]
