"""The back end of NIXL and GPU memory, by a made-up driver, whose memory the processor cannot touch. No GPU ran it."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_up_nixl import (
    DISCONNECTED,
    DONE,
    DRAM,
    MIB,
    NOT_FOUND,
    NOT_SUPPORTED,
    PATIENCE,
    UNDER_WAY,
    VRAM,
    Pair,
    Process,
    driver,
    program,
    share,
    transfer,
)

MAGIC = 0x32_6C_78_69_6E_2D_77_77  # of the plug-in's connections


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def pair(made: Path, cuda: Path) -> Iterator[Pair]:
    found = Pair(made, cuda)
    with found.one, found.two:
        yield found


def test_bytes_go_between_hosts_and_gpus_of_two_processes(pair: Pair) -> None:
    one, two = pair.one, pair.two
    assert one.first == "WAYWISER 1 2"
    kinds = {"host": DRAM, "gpu": VRAM}
    for number, (name, kind) in enumerate(kinds.items()):
        share(two, "b", name, 35 * MIB, 3 + number, one, "a", kind)
        one.ask(f"a memory {name} {35 * MIB} {100 + number} {kind}")
    for number, (near, far) in enumerate(itertools.product(kinds, kinds)):
        bytes = (33 if far == "gpu" else 4) * MIB + number  # more than one part
        assert transfer(one, "a", f"write b {near} {number} {far} 9 {bytes}", "wrote") == DONE
        assert two.ask("b take 1") == "a:wrote"
        assert one.ask(f"a sum {near} {number} {bytes}") == two.ask(f"b sum {far} 9 {bytes}")
        assert transfer(one, "a", f"read b {near} {MIB} {far} 0 {bytes}") == DONE
        assert one.ask(f"a sum {near} {MIB} {bytes}") == two.ask(f"b sum {far} 0 {bytes}")
        assert transfer(one, "a", f"write b {near} 0 {far} 64 24 1000 4096") == DONE
        assert one.ask(f"a sum {near} {999 * 4096} 24") == two.ask(f"b sum {far} {64 + 999 * 4096} 24")
    assert one.end() == [] and two.end() == []


def test_within_a_process(made: Path, cuda: Path) -> None:
    with Process(made, driver=cuda) as process:
        about = {name: process.ask(f"{name} start") for name in "ab"}
        assert process.ask(f"a learn b {about['b']}") == DONE
        share(process, "b", "far", 2 * MIB, 3, process, "a", VRAM)
        for kind, name in ((DRAM, "host"), (VRAM, "gpu")):
            process.ask(f"a memory {name} {2 * MIB} 9 {kind}")
            assert transfer(process, "a", f"write b {name} 5 far 7 {MIB}") == DONE
            assert process.ask(f"a sum {name} 5 {MIB}") == process.ask(f"b sum far 7 {MIB}")
        assert transfer(process, "a", f"write a gpu 0 host 0 {MIB}") == DONE
        assert process.ask(f"a sum gpu 0 {MIB}") == process.ask(f"a sum host 0 {MIB}")
        assert process.end() == []


def test_a_gpu_memory_that_was_deregistered_is_touched_no_more(pair: Pair) -> None:
    share(pair.two, "b", "far", MIB, 3, pair.one, "a", VRAM)
    pair.one.ask(f"a memory near {MIB} 9 {VRAM}")
    before = pair.two.ask(f"b sum far 0 {MIB}")
    assert pair.one.ask("a prepare write b near 0 far 0 4096") == DONE
    assert pair.two.ask("b remove far") == "0 0"
    assert pair.one.ask("a post late") == NOT_FOUND
    assert pair.two.ask(f"b sum far 0 {MIB}") == before


def test_a_memory_with_a_wrong_handle_is_left_to_other_back_ends(pair: Pair) -> None:
    address, size, blob, kind = pair.two.ask(f"b memory far 4096 3 {VRAM}").split()
    wrong = blob[:40] + "00" * 20 + blob[80:]
    assert pair.one.ask(f"a learn_memory b far {address} {size} {wrong} {kind}") == "0 0"
    assert pair.one.ask(f"a learn_memory b far {address} {size} {blob} {kind}") == "0 4096"


def test_without_a_driver_it_is_left_to_other_back_ends(made: Path, cuda: Path) -> None:
    with Process(made) as one, Process(made, driver=cuda) as two:
        one.ask("a start")
        assert one.ask(f"a learn b {two.ask('b start')}") == DONE
        about = two.ask(f"b memory far 4096 3 {VRAM}")
        assert one.ask(f"a learn_memory b far {about}") == "0 0"  # no transfer finds a range of no bytes
        (line,) = one.end()
        assert "this process has no driver of CUDA" in line


def gpu_to_host(pair: Pair, bytes: int) -> str:
    """Writes from a GPU of the one process into host memory of the other, and back; the first status."""
    share(pair.two, "b", "far", bytes, 3, pair.one, "a")
    pair.one.ask(f"a memory near {bytes} 9 {VRAM}")
    status = transfer(pair.one, "a", f"write b near 0 far 0 {bytes}")
    assert pair.one.ask(f"a sum near 0 {bytes}") == pair.two.ask(f"b sum far 0 {bytes}")
    assert transfer(pair.one, "a", f"read b near 0 far 1 {bytes - 1}") == DONE
    assert pair.one.ask(f"a sum near 0 {bytes - 1}") == pair.two.ask(f"b sum far 1 {bytes - 1}")
    return status


@pytest.mark.parametrize(("bytes", "by_owner"), [(4 * MIB, True), (MIB // 4, False)])
def test_the_owner_of_host_memory_copies(
    made: Path, cuda: Path, monkeypatch: pytest.MonkeyPatch, bytes: int, by_owner: bool
) -> None:
    monkeypatch.setenv("MADE_UP_CUDA_TELLS", "1")
    pair = Pair(made, cuda)
    with pair.one, pair.two:
        assert gpu_to_host(pair, bytes) == DONE
        copied = [f"made-up CUDA: copied {2 * bytes - 1} bytes"], ["made-up CUDA: copied 0 bytes"]
        assert (pair.two.end(), pair.one.end()) == (copied if by_owner else copied[::-1])


def test_ranges_of_several_memories_that_the_owner_copies(pair: Pair) -> None:
    one, two = pair.one, pair.two
    share(two, "b", "far", 4 * MIB, 3, one, "a")
    one.ask(f"a memory near {4 * MIB} 9 {VRAM}")
    assert transfer(one, "a", "write b near 8 far 16 1000 2000 2048") == DONE  # several orders
    for index in (0, 1, 1023, 1024, 1999):
        at = index * 2048
        assert one.ask(f"a sum near {8 + at} 1000") == two.ask(f"b sum far {16 + at} 1000")
    assert two.ask("b remove far") == "0 0"
    assert transfer(one, "a", f"write b near 0 far 0 {MIB}") == NOT_FOUND
    two.end()


@pytest.mark.parametrize("has_driver", [False, True])
def test_an_owner_that_cannot_copy(made: Path, cuda: Path, monkeypatch: pytest.MonkeyPatch, has_driver: bool) -> None:
    pair = Pair.__new__(Pair)
    pair.one = Process(made, driver=cuda)
    monkeypatch.setenv("MADE_UP_CUDA_OPENS_NOTHING", "1")
    pair.two = Process(made, driver=cuda if has_driver else None)
    with pair.one, pair.two:
        pair.one.ask("a start")
        assert pair.one.ask(f"a learn b {pair.two.ask('b start')}") == DONE
        assert gpu_to_host(pair, 5 * MIB + 7) == DONE
        (said, *more) = pair.one.end() if has_driver else ["bytes go through buffers", *pair.one.end()]
        assert "bytes go through buffers" in said and more == []


def await_copy(gate: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not gate.with_name("gate.in").exists():
        assert time.monotonic() < deadline, "no copy has begun"


def test_an_owner_that_dies_in_a_copy(made: Path, cuda: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (gate := tmp_path / "gate").touch()
    monkeypatch.setenv("MADE_UP_CUDA_GATE", str(gate))
    pair = Pair(made, cuda)
    with pair.one, pair.two:
        share(pair.two, "b", "far", 4 * MIB, 3, pair.one, "a")
        pair.one.ask(f"a memory near {4 * MIB} 9 {VRAM}")
        assert pair.one.ask(f"a prepare write b near 0 far 0 {4 * MIB}") == DONE
        assert pair.one.ask("a post") == UNDER_WAY
        await_copy(gate)
        pair.two.kill()
        assert pair.one.ask("a wait") == DISCONNECTED
        assert pair.one.ask("a remove near") == "0 0"
        (line,) = pair.one.end()
        assert line.endswith("has ended")


@pytest.mark.slow
@pytest.mark.parametrize("by_owner", [False, True])
def test_pages_stay_locked_while_a_copy_is_under_way(
    made: Path, cuda: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by_owner: bool
) -> None:
    """Deregistration that has waited long enough lets the program go on, and the pages go when the copy has ended."""
    (gate := tmp_path / "gate").touch()
    monkeypatch.setenv("MADE_UP_CUDA_GATE", str(gate))
    pair = Pair(made, cuda)
    with pair.one, pair.two:
        far, near = (DRAM, VRAM) if by_owner else (VRAM, DRAM)
        share(pair.two, "b", "far", 4 * MIB, 3, pair.one, "a", far)
        pair.one.ask(f"a memory near {4 * MIB} 9 {near}")
        assert pair.one.ask(f"a prepare write b near 0 far 0 {4 * MIB}") == DONE
        assert pair.one.ask("a post") == UNDER_WAY
        await_copy(gate)
        owner, removal = (pair.two, "b remove far") if by_owner else (pair.one, "a remove near")
        assert owner.ask(removal) == "0 0"
        gate.unlink()
        assert pair.one.ask("a wait") == DONE
        (line,) = owner.end()
        assert line.endswith("held a memory that was deregistered")


class Stranger:
    """A process of the user that orders copies without the plug-in."""

    def __init__(self, about: str, process: int) -> None:
        name = bytes.fromhex(about).decode().split()[2]
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(f"\0waywiser-nixl-{name}")
        self._socket.sendall(struct.pack("<QQ", MAGIC, 1) + b"x")
        reply, (descriptor,), _, _ = socket.recv_fds(self._socket, 32, 1)
        os.close(descriptor)
        _, proof, word, has_driver = struct.unpack("<4Q", reply)
        with Path(f"/proc/{process}/mem").open("rb") as memory:
            memory.seek(proof)
            found, *self.key = struct.unpack("<3Q", memory.read(24))
        assert (found, has_driver) == (word, 1)

    def order(self, key: list[int], host: tuple[int, int], range: tuple[int, int], handle: bytes = b"") -> int | None:
        """The status; None: the connection is closed."""
        body = struct.pack("<3Q6I", *key, 7, 1, 1, 1, 1, 1, 0)
        body += handle.ljust(64, b"\0") + struct.pack("<3Q", 0, 4096, range[1])
        body += struct.pack("<2I", *host) + struct.pack("<4Q", 4096, range[1], *range)
        self._socket.sendall(struct.pack("<Q", 1 << 63 | len(body)) + body)
        answer = self._socket.recv(16, socket.MSG_WAITALL)
        return struct.unpack("<Qq", answer)[1] if answer else None


def test_orders_are_not_trusted(made: Path, cuda: Path) -> None:
    with Process(made, driver=cuda) as owner:
        about = owner.ask("b start")
        address, _, blob, _ = owner.ask("b memory host 8192 3").split()
        owner.ask(f"b memory gpu 8192 3 {VRAM}")
        at, number = int(address), struct.unpack("<2I", bytes.fromhex(blob)[8:16])
        before = owner.ask("b sum host 0 8192")
        stranger = Stranger(about, owner.child.pid)
        for host, range in (
            ((number[0], number[1] + 1), (at, 64)),  # registered no more
            ((1 << 30, 1), (at, 64)),
            (number, (at + 8192 - 63, 64)),
            (number, (at - 1, 64)),
            ((number[0] + 1, 1), (at, 64)),  # of a GPU
        ):
            assert stranger.order(stranger.key, host, range) == int(NOT_FOUND), (host, range)
        assert stranger.order(stranger.key, number, (at, 64), b"no handle") == int(NOT_SUPPORTED)
        assert stranger.order([stranger.key[0], stranger.key[1] ^ 1], number, (at, 64)) is None
        assert owner.ask("b sum host 0 8192") == before
        owner.end()
