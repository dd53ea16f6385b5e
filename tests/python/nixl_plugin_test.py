"""The back end of NIXL, without NIXL: a program that calls it as NIXL does, in one process and in two."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_up_nixl import (
    DISCONNECTED,
    DONE,
    FAILED,
    MIB,
    MISMATCH,
    NOT_ALLOWED,
    NOT_FOUND,
    NOT_SUPPORTED,
    UNDER_WAY,
    Pair,
    Process,
    library,
    plan,
    program,
    share,
    transfer,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("program"))


@pytest.fixture
def pair(made: Path) -> Iterator[Pair]:
    found = Pair(made)
    with found.one, found.two:
        yield found


def same(one: Process, at: str, other: Process, its: str) -> bool:
    return one.ask(at) == other.ask(its)


def test_bytes_go_both_ways_and_notifications_come_behind_them(pair: Pair) -> None:
    one, two = pair.one, pair.two
    share(two, "b", "far", 5 * MIB, 3, one, "a")
    one.ask(f"a memory near {5 * MIB} 200")
    for bytes in (1, 4096, 65537, 3 * MIB + 5):
        assert not same(one, f"a sum near 7 {bytes}", two, f"b sum far 11 {bytes}")
        assert transfer(one, "a", f"write b near 7 far 11 {bytes}", f"wrote{bytes}") == DONE
        assert two.ask("b take 1") == f"a:wrote{bytes}"
        assert same(one, f"a sum near 7 {bytes}", two, f"b sum far 11 {bytes}")
    before = two.ask("b sum far 0 11")
    assert transfer(one, "a", f"read b near 0 far 0 {5 * MIB}", "read") == DONE
    assert two.ask("b take 1") == "a:read"
    assert same(one, f"a sum near 0 {5 * MIB}", two, f"b sum far 0 {5 * MIB}")
    assert one.ask("a sum near 0 11") == before
    assert one.end() == [] and two.end() == []


def test_notifications_alone(pair: Pair) -> None:
    assert pair.one.ask("a send b hello") == DONE
    assert pair.one.ask(f"a send b long {3 * MIB}") == DONE
    assert pair.one.ask("a send a myself") == DONE
    assert pair.two.ask("b send a back") == DONE
    assert pair.two.ask("b take 2") == f"a:hello a:{3 * MIB}"
    assert sorted(pair.one.ask("a take 2").split()) == ["a:myself", "b:back"]
    assert pair.one.ask("a send c nobody") == NOT_FOUND
    assert pair.one.ask(f"a send b longer {65 * MIB}") == "-2"


def test_a_request_is_posted_again(pair: Pair) -> None:
    one, two = pair.one, pair.two
    share(two, "b", "far", 2 * MIB, 3, one, "a")
    one.ask(f"a memory near {2 * MIB} 9")
    assert one.ask(f"a prepare write b near 0 far 0 {2 * MIB}") == DONE
    for turn in range(3):
        assert one.ask(f"a post again{turn}") == UNDER_WAY
        assert one.ask("a wait") == DONE
        assert two.ask("b take 1") == f"a:again{turn}"
    assert one.ask("a release") == DONE


def test_a_hundred_thousand_ranges(pair: Pair) -> None:
    one, two = pair.one, pair.two
    bytes, count = 48, 100_000
    share(two, "b", "far", 64 * count, 3, one, "a")
    one.ask(f"a memory near {64 * count} 9")
    between = two.ask("b sum far 48 16")
    assert transfer(one, "a", f"write b near 0 far 0 {bytes} {count} 64", "all") == DONE
    assert two.ask("b take 1") == "a:all"
    for index in (0, 1, count // 2, count - 1):
        assert same(one, f"a sum near {64 * index} 48", two, f"b sum far {64 * index} 48")
    assert two.ask("b sum far 48 16") == between
    assert transfer(one, "a", f"read b near 0 far 0 64 {count} 64") == DONE  # neighbours: they are joined
    assert same(one, f"a sum near 0 {64 * count}", two, f"b sum far 0 {64 * count}")


def test_within_an_agent_and_between_two_of_one_process(made: Path) -> None:
    with Process(made) as process:
        about = {name: process.ask(f"{name} start") for name in "ab"}
        assert process.ask(f"a learn b {about['b']}") == DONE
        share(process, "b", "far", 3 * MIB, 3, process, "a")
        process.ask(f"a memory near {3 * MIB} 9")
        process.ask(f"a memory other {3 * MIB} 77")
        for bytes in (5, 2 * MIB + 1):
            assert transfer(process, "a", f"write a near 1 other 2 {bytes}", "own") == DONE
            assert process.ask("a take 1") == "a:own"
            assert same(process, f"a sum near 1 {bytes}", process, f"a sum other 2 {bytes}")
            assert transfer(process, "a", f"write b near 0 far 3 {bytes}", "there") == DONE
            assert process.ask("b take 1") == "a:there"
            assert same(process, f"a sum near 0 {bytes}", process, f"b sum far 3 {bytes}")
        assert process.ask("b remove far") == "0 0"
        assert transfer(process, "a", "write b near 0 far 0 8") == NOT_FOUND
        assert process.ask("b end") == "1"
        assert len(process.end()) == 1


def test_a_memory_that_was_deregistered_is_touched_no_more(pair: Pair) -> None:
    one, two = pair.one, pair.two
    share(two, "b", "far", 2 * MIB, 3, one, "a")
    one.ask(f"a memory near {2 * MIB} 9")
    assert one.ask(f"a prepare write b near 0 far 0 {2 * MIB}") == DONE
    before = two.ask(f"b sum far 0 {2 * MIB}")
    assert two.ask("b remove far") == "0 0"
    assert one.ask("a post late") == UNDER_WAY
    assert one.ask("a wait") == NOT_FOUND
    assert two.ask(f"b sum far 0 {2 * MIB}") == before
    share(two, "b", "next", 2 * MIB, 5, one, "a")  # in the same slot
    assert one.ask("a post late") == UNDER_WAY
    assert one.ask("a wait") == NOT_FOUND
    assert one.ask("a release") == DONE
    assert one.ask("a prepare write b near 0 next 0 8") == DONE
    assert one.ask("a remove near") == "0 0"
    assert one.ask("a post late") == NOT_FOUND
    assert one.end() == ["waywiser: NIXL: a memory of a transfer has been deregistered"]


def test_memory_that_is_not_mapped_is_an_error(pair: Pair) -> None:
    one, two = pair.one, pair.two
    share(two, "b", "far", 2 * MIB, 3, one, "a")
    one.ask(f"a memory near {2 * MIB} 9")
    assert two.ask("b unmap far") == "0"
    assert transfer(one, "a", "read b near 0 far 0 4096", "no") == FAILED
    assert transfer(one, "a", f"write b near 0 far 0 {2 * MIB}", "no") == FAILED
    assert pair.one.ask("a send b behind") == DONE
    assert two.ask("b take 1") == "a:behind"
    (said,) = one.end()
    assert "registered memory, here or there, is not mapped" in said


def test_an_agent_that_dies_is_told(pair: Pair) -> None:
    one = pair.one
    share(pair.two, "b", "far", 2 * MIB, 3, one, "a")
    one.ask(f"a memory near {2 * MIB} 9")
    assert one.ask(f"a prepare write b near 0 far 0 {2 * MIB}") == DONE
    pair.two.kill()
    assert one.ask("a post gone") == UNDER_WAY
    assert one.ask("a wait") == DISCONNECTED
    assert one.ask("a release") == DONE
    assert one.ask("a prepare read b near 0 far 0 8") == DONE
    assert one.ask("a post gone") == DISCONNECTED
    assert one.ask("a send b gone") == DISCONNECTED
    assert one.ask(f"a learn b {pair.about_b}") == NOT_SUPPORTED
    assert any("it has ended, or has another network namespace" in line for line in one.end())


def test_release_ends_a_request_under_way(pair: Pair) -> None:
    one = pair.one
    share(pair.two, "b", "far", 64 * MIB, 3, one, "a")
    one.ask(f"a memory near {64 * MIB} 9")
    assert one.ask(f"a prepare write b near 0 far 0 {64 * MIB}") == DONE
    assert one.ask("a post never") == UNDER_WAY
    assert one.ask("a post never") == NOT_ALLOWED
    assert one.ask("a release") == DONE
    assert one.ask("a unmap near") == "0"
    assert one.ask("a remove near") == "0 0"
    assert one.end() == []


def test_an_agent_of_another_machine_is_left_to_other_back_ends(made: Path) -> None:
    with Process(made) as process:
        about = bytes.fromhex(process.ask("a start")).decode().split(" ")
        about[1] = "12345678-1234-1234-1234-123456789abc"
        process.ask("a memory near 4096 1")
        own = process.ask("a memory far 4096 1")
        assert process.ask(f"a learn b {' '.join(about).encode().hex()}") == NOT_SUPPORTED
        assert process.ask(f"a learn_memory b far {own}") == "0 0"  # no transfer finds a range of no bytes
        assert transfer(process, "a", "write b near 0 far 0 8") == NOT_SUPPORTED
        assert process.end()[0] == (
            "waywiser: NIXL: agent b is left to NIXL's other back ends: it is on another machine"
        )


def test_any_metadata_is_refused_or_harmless(pair: Pair) -> None:
    one, two, chance = pair.one, pair.two, random.Random(7)
    about = share(two, "b", "far", 4096, 3, one, "a")
    one.ask("a memory near 8192 9")
    before = two.ask("b sum far 0 4096")
    address, size, blob, _ = about.split()
    for _ in range(200):
        words = bytearray.fromhex(chance.choice([pair.about_b, blob]))
        for _ in range(chance.randrange(1, 4)):
            words[chance.randrange(len(words))] = chance.randrange(256)
        cut = words[: chance.randrange(len(words) + 1)].hex() or "-"
        assert one.ask(f"a learn c {cut}") in (MISMATCH, NOT_SUPPORTED)
        found = one.ask(f"a learn_memory b odd {address} {size} {words.hex()}")
        if found == f"0 {size}" and words.hex() != blob:
            assert transfer(one, "a", f"write b near 0 odd 0 {size}") == NOT_FOUND
    for start, bytes in ((int(address) - 1, 8), (int(address) + 4090, 8), (2**64 - 4, 8), (0, 8), (int(address), 8192)):
        assert one.ask(f"a learn_memory b odd {start} {bytes} {blob}") == f"0 {bytes}"
        assert transfer(one, "a", f"write b near 0 odd 0 {bytes}") == NOT_FOUND
    assert two.ask("b sum far 0 4096") == before
    assert transfer(one, "a", "write b near 0 far 0 4096") == DONE


@pytest.mark.parametrize(
    ("version", "told"), [("1.6.0", "this is 1.6.0"), ("", "version of this NIXL cannot be found")]
)
def test_another_version_is_refused_in_one_line(made: Path, version: str, told: str) -> None:
    library(made.parent, version)
    with Process(made, version) as process:
        assert process.first == "not loaded"
        (line,) = process.end()
        assert line.startswith("waywiser: NIXL: this plug-in serves NIXL 1.5.1, and ") and told in line


def test_what_it_is(made: Path) -> None:
    with Process(made) as process:
        assert process.first == "WAYWISER 1 1"
        process.ask("a start")
        process.ask("a memory near 4096 1")
        process.ask("a memory far 4096 1")
        assert process.ask("a prepare write a near 0 far 0 8") == DONE
        assert process.ask("a cost") == f"{NOT_SUPPORTED} 0 -1"  # without a plan
        assert process.end() == []


def test_the_plan_says_how_long_and_by_how_many_threads(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan(0.25, threads=3))
    with Process(made, plan=str(file)) as one, Process(made) as two:
        abouts = one.ask("a start"), two.ask(f"b start {file}")
        assert two.ask(f"b learn a {abouts[0]}") == one.ask(f"a learn b {abouts[1]}") == DONE
        share(two, "b", "far", 64 * MIB, 3, one, "a")
        share(one, "a", "near", 64 * MIB, 9, two, "b")
        assert one.ask(f"a prepare write b near 0 far 0 {64 * MIB}") == DONE
        assert one.ask("a cost") == "0 250000 0"
        assert one.ask("a post all") == UNDER_WAY
        assert one.ask("a wait") == DONE
        assert two.ask("b take 1") == "a:all"
        assert one.ask(f"a sum near 0 {64 * MIB}") == two.ask(f"b sum far 0 {64 * MIB}")
        assert one.ask("a prepare write a near 0 near 8 8") == DONE
        assert one.ask("a cost").startswith(NOT_SUPPORTED)  # the plan has no row within a process


def test_a_transfer_below_half_of_the_plans_rate_is_told_with_memory_and_reason(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan(1e-9))
    with Process(made, plan=str(file)) as one, Process(made) as two:
        one.ask("a start")
        assert one.ask(f"a learn b {two.ask('b start')}") == DONE
        share(two, "b", "far", 4 * MIB, 3, one, "a")
        one.ask(f"a memory near {4 * MIB} 9")
        assert transfer(one, "a", f"write b near 0 far 0 {2 * MIB}") == DONE
        assert transfer(one, "a", "write b near 0 far 0 4096 1000 4104") == DONE
        large, scattered = one.end()
        for line in (large, scattered):
            assert line.startswith("waywiser: NIXL: host memory to host memory of another process, ")
            assert "and the plan says" in line and "by host_copy(stores=temporal,threads=1); " in line
        assert "1000 ranges, and the plan is for one" in scattered and "first time" in large


def test_a_plan_of_something_else_is_not_followed(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    for text, told in (
        (plan(1, simulated=True), "it comes from a simulation"),
        (plan(1, fingerprint="f00"), "it is for machines f00, and this is"),
        ("{", str(file)),
    ):
        file.write_text(text)
        with Process(made, plan=str(file)) as one:
            one.ask("a start")
            (line,) = one.end()
            assert line.startswith("waywiser: NIXL: no plan: ") and told in line
