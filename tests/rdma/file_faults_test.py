"""Files on a disk with faults: errors of the device, writes that are lost, and a disk that becomes slow.

In a guest, whose kernel has device mapper also where that of this machine has not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rdma_testbed.guest import Command, Guest
from rdma_testbed.two_guests import TwoGuests

HERE = Path(__file__).parent
BASE = {"PYTHONPATH": str(HERE.parents[1] / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
SECTORS = 131072  # 64 MiB
BAD, BAD_SECTORS = 4096, 128  # from 2 MiB on
DISK, MOUNTED = "/dev/mapper/faulty", "/tmp/faulty"
DOWN = "0 1"  # seconds of dm-flakey: never up, always down
PLAIN = f"0 {SECTORS} linear $DISK 0"
ERRORS = f"0 {SECTORS} flakey $DISK 0 {DOWN}"
WRITE_ERRORS = f"{ERRORS} 1 error_writes"
LOST_WRITES = f"{ERRORS} 1 drop_writes"
DELAYED = f"0 {SECTORS} delay $DISK 0 50"
WAYS = ("buffered", "buffered(chunk=64K,threads=3)", "mmap", "direct", "io_uring", "io_uring(chunk=64K,depth=5)")


class Disk:
    """A disk of one guest, whose table of device mapper can be exchanged while it is used."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        made = "truncate -s 64M /dev/shm/disk; losetup -f --show /dev/shm/disk"
        (self._loop,) = self.shell(made)
        self._dm("create --table", PLAIN)

    def shell(self, line: str) -> list[str]:
        lines: list[str] = self._guest.run(["/bin/sh", "-ec", line], {"DM_DISABLE_UDEV": "1"}).lines
        return lines

    def _dm(self, verb: str, table: str) -> None:
        self.shell(f'dmsetup {verb} "{table.replace("$DISK", self._loop)}" faulty')

    def becomes(self, table: str) -> None:
        self._dm("load --table", table)
        self.shell("dmsetup suspend --noflush --nolockfs faulty; dmsetup resume faulty")

    def mount(self) -> None:
        self.shell(f"mkdir -p {MOUNTED}; mount -o errors=continue {DISK} {MOUNTED}")

    def make_files(self) -> None:
        self.shell(f"mkfs.ext4 -q {DISK}")
        self.mount()

    def unmount(self) -> None:
        self.shell(f"umount {MOUNTED}")

    def end(self) -> None:
        self.shell(f"umount {MOUNTED} || true; dmsetup remove faulty; losetup -d {self._loop}; rm /dev/shm/disk")


@pytest.fixture
def disk(guests: TwoGuests) -> Iterator[Disk]:
    made = Disk(guests.guests[0])
    yield made
    made.end()


class Calls:
    """A program of waywiser in the guest."""

    def __init__(self, guest: Guest) -> None:
        self._program: Command = guest.start([sys.executable, HERE / "file_calls.py"], BASE, seconds=300)
        self._program.wait_for_line("ready")

    def __call__(self, *words: object) -> str:
        self._program.tell(" ".join(map(str, words)))
        return str(self._program.wait_for_line("answer")).removeprefix("answer ")


@pytest.fixture(scope="module")
def calls(guests: TwoGuests) -> Calls:
    return Calls(guests.guests[0])


@pytest.mark.short
def test_what_the_device_cannot_read_is_an_error_with_path_and_offset(disk: Disk, calls: Calls) -> None:
    assert calls("make", DISK) == "done"
    assert {calls("read", way, DISK) for way in WAYS} == {"intact"}
    rest = BAD + BAD_SECTORS
    disk.becomes(
        f"0 {BAD} linear $DISK 0\n{BAD} {BAD_SECTORS} flakey $DISK {BAD} {DOWN}\n"
        f"{rest} {SECTORS - rest} linear $DISK {rest}"
    )
    for way in WAYS:
        said = calls("read", way, DISK)
        found = re.fullmatch(rf"{DISK}: cannot read (\d+) bytes at (\d+): (.*)", said)
        assert found, f"{way}: {said}"
        begin, end = int(found[2]), int(found[1]) + int(found[2])
        assert begin < rest * 512 and end > BAD * 512, f"{way}: {said}"
        assert found[3] in ("Input/output error", "a page of it cannot be read"), f"{way}: {said}"
    disk.becomes(PLAIN)
    assert {calls("read", way, DISK) for way in WAYS} == {"intact"}


@pytest.mark.parametrize("way", ["buffered", "io_uring"])
def test_a_file_on_a_device_with_faults_is_replaced_whole_or_not_at_all(disk: Disk, calls: Calls, way: str) -> None:
    """Writes that fail, and writes that are lost in silence, as when the power fails: from before the bytes on, from
    after them, and from after the end."""
    path = f"{MOUNTED}/a"
    disk.make_files()

    def replaced(seed: int, table: str, before: str) -> list[str]:
        answers = [calls("open", way, path)]
        for step in (f"write {seed}", "close", "nothing"):
            if step.startswith(before):
                disk.becomes(table)
            if step != "nothing":
                answers.append(calls(step))
        disk.unmount()
        disk.becomes(PLAIN)
        disk.mount()
        assert disk.shell(f"ls {MOUNTED}") == ["a", "lost+found"]
        return answers

    assert replaced(1, LOST_WRITES, "nothing") == ["done"] * 3
    assert calls("whole", path) == "1"
    for seed, before in ((2, "write"), (3, "close")):
        said = replaced(seed, WRITE_ERRORS, before)
        assert re.match(rf"{path}: .*Input/output error", said[-1]) or "a write has failed" in said[-1], said
        assert calls("whole", path) == "1"
    for seed, before in ((4, "write"), (5, "close")):
        assert replaced(seed, LOST_WRITES, before) == ["done"] * 3
        assert calls("whole", path) == "1"


@pytest.mark.short
def test_a_way_that_becomes_slow_on_the_device_is_left(disk: Disk, calls: Calls) -> None:
    """Each read of the device takes 50 ms more: the 16 of one call one after the other, or all at once."""
    calls("make", DISK)
    first = calls("watch", DISK).split()[0]
    assert calls("look").split()[0] == first
    disk.becomes(DELAYED)
    looks = [calls("look").split() for _ in range(6)]
    calls("leave")
    slow = [float(seconds) for way, seconds in looks if way == first]
    fast = [float(seconds) for way, seconds in looks if way != first]
    print(f"left after {sum(slow):.2f} s of {len(slow)} calls; then {min(fast, default=0):.2f} s a call")
    assert len(slow) <= 2, looks  # 16 times 50 ms are more than half a second
    assert max(fast) < min(slow), looks
