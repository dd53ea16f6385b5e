"""The back end of NIXL and GPU memory, by a made-up driver, whose memory the processor cannot touch. No GPU ran it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_up_nixl import DONE, DRAM, MIB, NOT_FOUND, VRAM, Pair, Process, driver, program, share, transfer


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
