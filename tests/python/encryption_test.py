"""Encrypted jobs of two machines: reading or changing the traffic between them gains an attacker nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rank_jobs import COMMAND, ROOT, run, runtime_folder
from two_machines import TwoMachines, ip

from waywiser import _core

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow

needs_tls = pytest.mark.skipif(bool(_core.why_no_tls()), reason=_core.why_no_tls())


class WatchedMachines(TwoMachines):
    """Two machines, and a process between them that all frames pass through."""

    def __init__(self, folder: Path) -> None:
        self.seen, self.change, self.changed = (folder / name for name in ("seen", "change", "change.made"))
        super().__init__()

    def make(self) -> None:
        words = [sys.executable, str(ROOT / "tests/python/wire.py")]
        for number, (name, link) in enumerate(zip(self.names, self.links[0], strict=True), 1):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "tuntap", "add", "dev", link, "mode", "tap")
            ip("-n", name, "address", "add", f"10.99.7.{number}/24", "dev", link)
            ip("-n", name, "link", "set", link, "mtu", "9000", "up")
            words += [name, link]
        self.wire = subprocess.Popen([*words, str(self.seen), str(self.change)], stdout=subprocess.PIPE, text=True)
        assert self.wire.stdout is not None
        if self.wire.stdout.readline() != "ready\n":
            pytest.skip("no TAP devices here")
        for name, link in zip(self.names, self.links[0], strict=True):
            self.await_carrier(name, link)

    def close(self) -> None:
        if hasattr(self, "wire"):
            self.wire.kill()
            self.wire.communicate()
        super().close()

    def run(self, folder: Path, program: str, *options: str, size: int = 2) -> tuple[int, list[str], str]:
        """Exit code, sorted lines of output, and errors, of a job with ranks on both."""
        hosts, ssh = self.hosts_and_ssh(folder)
        file = folder / "program.py"
        file.write_text(program)
        command = [*COMMAND, "run", "-n", str(size), "--plain", "--hosts", str(hosts), "--ssh", str(ssh), *options]
        done = subprocess.run(
            [*command, sys.executable, str(file), str(self.change)],
            env=os.environ | {"WAYWISER_UCX_TLS": "tcp,self"} if "--encrypt" not in options else os.environ,
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        return done.returncode, sorted(done.stdout.splitlines()), done.stderr


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[WatchedMachines]:
    made = WatchedMachines(tmp_path)
    yield made
    made.close()


MARK = b"nobody but us may read this one!"

TALK = f"""
import numpy as np, waywiser as ww
group = ww.join(timeout=60)
mark = np.frombuffer({MARK!r}, np.uint8)
other = 1 - group.rank
for count in (1, 4, 250, 300, 2000, 2100, 10000, 60000):
    mine = np.tile(mark, count)
    theirs = np.zeros_like(mine)
    if group.rank == 0:
        group.send(mine, 1)
        group.recv(theirs, 1)
    else:
        group.recv(theirs, 0)
        group.send(mine, 0)
    assert (theirs == mine).all(), count
    assert (group.all_reduce(mine, op="max") == mine).all(), count
    assert (group.broadcast(mine if group.rank == 0 else np.zeros_like(mine), 0) == mine).all(), count
    assert (group.all_gather(mine).reshape(2, -1) == mine).all(), count
try:
    group.send(mine[:100], other) if group.rank == 0 else group.recv(mine[:200], other)
except ww._core.Error as error:
    assert "sent 100 bytes" in str(error) or "rank 1" in str(error), error
print(group.rank, "has all")
"""


@pytest.mark.parametrize("options", [pytest.param(["--encrypt"], marks=needs_tls), []])
def test_nothing_of_the_data_can_be_read_on_the_wire_where_a_job_encrypts(
    machines: WatchedMachines, tmp_path: Path, options: list[str]
) -> None:
    """The unencrypted job shows that the search finds plain text."""
    code, out, err = machines.run(tmp_path, TALK, *options)
    assert (code, out) == (0, ["0 has all", "1 has all"]), err
    seen = machines.seen.read_bytes()
    assert len(seen) > 8 * 60000 * len(MARK)
    assert (MARK in seen) == (not options)
    # Nor names of calls and hosts, which go between a rank and the root.
    assert b"sent 100 bytes" not in seen


CHANGED = """
import os, sys, numpy as np, waywiser as ww
group = ww.join(timeout=60)
values = np.full(100000, 3, np.uint8)
group.all_gather(values)  # makes the connections
group.barrier()  # all of it has arrived
if group.rank == 0:
    with open(sys.argv[1] + ".new", "wb") as change:
        change.write({middle!r})
    os.rename(change.name, sys.argv[1])
try:
    for _ in range(20):
        got = group.all_gather(values)
        if (got != 3).any():
            print(group.rank, "took wrong bytes")
except ww._core.Error as error:
    print(group.rank, "says", error)
"""


@needs_tls
def test_a_bit_that_changes_on_the_wire_is_an_error_that_names_the_rank(
    machines: WatchedMachines, tmp_path: Path
) -> None:
    code, out, err = machines.run(tmp_path, CHANGED.format(middle=b""), "--encrypt")
    assert machines.changed.exists(), "nothing was changed"
    assert [line.split(" says ")[0] for line in out] == ["0", "1"], (code, out, err)
    assert all("the encrypted connection to rank" in line and "bad record mac" in line for line in out), out


def test_without_encryption_it_is_taken_for_data(machines: WatchedMachines, tmp_path: Path) -> None:
    """Shows that the test above changes the intended bytes."""
    _, out, err = machines.run(tmp_path, CHANGED.format(middle=b"\3" * 100))
    assert machines.changed.exists(), "nothing was changed"
    assert [line for line in out if "took wrong bytes" in line] != [], (out, err)


WINDOW = """
import numpy as np, waywiser as ww
group = ww.join(timeout=60)
window = group.expose(np.zeros(8))
try:
    group.put(np.ones(8), window, 1 - group.rank)
except ww._core.Error as error:
    print(error)
print(group.all_reduce(np.ones(1))[0])
"""


@needs_tls
def test_one_sided_calls_say_that_they_are_not_encrypted(machines: WatchedMachines, tmp_path: Path) -> None:
    code, out, err = machines.run(tmp_path, WINDOW, "--encrypt")
    say = "put, get and signal are not encrypted, and rank {} is on another machine: use messages, or do without"
    assert code == 0, err
    assert out[:2] == ["2.0", "2.0"]
    assert [line.startswith(say.format(rank)) for rank, line in enumerate(out[2:])] == [True, True], out


def ends(machines: TwoMachines, program: str, size: int = 2, **more: str) -> list[tuple[int, str, str]]:
    ranks = [machines.start(rank, size, ["-c", program], **more) for rank in range(size)]
    told = [process.communicate(timeout=100) for process in ranks]
    return [(process.returncode, *words) for process, words in zip(ranks, told, strict=True)]


@pytest.fixture
def plain_machines() -> Iterator[TwoMachines]:
    made = TwoMachines()
    yield made
    made.close()


SUM = "import numpy as np, waywiser as ww\ngroup = ww.join(timeout=30{})\nprint(group.all_reduce(np.ones(5))[0])"


@needs_tls
def test_a_program_may_ask_for_it(plain_machines: TwoMachines) -> None:
    assert ends(plain_machines, SUM.format(", encrypt=True")) == [(0, "2.0\n", "")] * 2
    for code, out, err in ends(plain_machines, SUM.format(", encrypt=False"), WAYWISER_ENCRYPT="1"):
        assert (code, out) == (0, "2.0\n"), err


def test_without_libssl_one_line_says_so(plain_machines: TwoMachines) -> None:
    for code, out, err in ends(plain_machines, SUM.format(""), WAYWISER_ENCRYPT="1", WAYWISER_LIBSSL="/nowhere/ssl.so"):
        assert (code, out) == (1, "")
        assert re.match(r"waywiser\.\w+Error: ", err.splitlines()[-1])
        assert "/nowhere/ssl.so" in err.splitlines()[-1] and "WAYWISER_LIBSSL" in err.splitlines()[-1]


@needs_tls
def test_a_job_of_one_machine_has_nothing_to_encrypt() -> None:
    code, out, err = run(2, "print(group.all_reduce(np.ones(2))[0])", "--encrypt")
    assert (code, out) == (0, ["2.0", "2.0"]), err


LONG = """
import os, signal, sys, numpy as np, waywiser as ww
group = ww.join(timeout=30)
group.barrier()
print("begun", flush=True)
data = np.zeros(200_000_000, np.uint8)
try:
    group.send(data, 1) if group.rank == 0 else (os.kill(os.getpid(), signal.{signal}), group.recv(data, 0))
except ww._core.Error as error:
    print(error, flush=True)
"""


@needs_tls
def test_a_rank_that_dies_in_the_middle_is_named(plain_machines: TwoMachines) -> None:
    first, second = ends(plain_machines, LONG.format(signal="SIGKILL"), WAYWISER_ENCRYPT="1")
    assert second[0] == -9
    assert first[0] == 0 and "rank 1 (process" in first[1], first


BUSY = """
import time, numpy as np, waywiser as ww
group = ww.join(timeout=60)
data = np.ones(50_000_000, np.uint8) if group.rank == 0 else np.zeros(50_000_000, np.uint8)
group.barrier()
request = group.start_send(data, 1) if group.rank == 0 else group.start_recv(data, 0)
if group.rank == 1:
    first = np.zeros(1)
    group.recv(first, 0)  # it has been asked for
    time.sleep(7)  # computes
else:
    group.send(np.ones(1), 1)
request.wait()
print((data == 1).all())
"""


@needs_tls
def test_a_rank_may_be_busy_for_long_with_a_message_on_its_way(plain_machines: TwoMachines) -> None:
    """Longer than it takes to find out that a machine is gone."""
    for code, out, err in ends(plain_machines, BUSY, WAYWISER_ENCRYPT="1"):
        assert (code, out) == (0, "True\n"), err


@needs_tls
def test_a_rank_that_is_stopped_is_waited_for_until_the_timeout(plain_machines: TwoMachines) -> None:
    program = LONG.replace("timeout=30", "timeout=1").format(signal="SIGSTOP")
    ranks = [plain_machines.start(rank, 2, ["-c", program], WAYWISER_ENCRYPT="1") for rank in range(2)]
    try:
        out, err = ranks[0].communicate(timeout=100)
        assert ranks[0].returncode == 0 and "waited 1.00 s in send" in out, (out, err)
    finally:
        deadline = time.monotonic() + 20
        while ranks[1].poll() is None and time.monotonic() < deadline:
            ranks[1].kill()
            time.sleep(0.05)
        ranks[1].communicate()
