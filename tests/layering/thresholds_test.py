"""A size that chooses a way stands in a table of defaults or comes from the plan; nowhere else."""

from __future__ import annotations

import re

import pytest
from layering_test import ROOT, SOURCES, cpp_files, without_comments

ROOMS = ("comm", "group", "collective", "heap", "halo", "offload", "table", "storage")
# What a size or a number of things is called, at the end of a name or of a call.
KIND = (
    r"(?:\w+(?:\(\))?(?:\.|->))*\w*(?:bytes|sizes?|counts?|length|longest|largest|smallest|parts?|pieces?|blocks?|pairs"
    r"|elements|ranks|runs?|messages|cells|rows|sides|units|words|sent|shares?|distance|rounds|steps|threads)_?(?:\(\w*\))?"
)
LESS = r"\s(?:<=|<|>=|>)\s"
OTHER = r"((?:\w+::)*[\w']+)"
COMPARED = re.compile(rf"(?<![\w:]){KIND}{LESS}(?:[\d']+ \* )?{OTHER}|(?<![\w:.]){OTHER}{LESS}{KIND}(?![\w(:])")
PARENTHESES = r"\((?:[^();{}]|\((?:[^();{}]|\([^();{}]*\))*\))*"  # without the last one
NOT_CHOICES = re.compile(
    rf"\bfor {PARENTHESES};[^;{{}}]*;"  # the end of a loop
    r"|\bstatic_assert\([^;]*;|\brequires\b[^\n]*|\bsizeof\(\w+\) <= \d+"  # what the compiler knows
    rf"|\bif {PARENTHESES}\)\s*(?:\{{\s*)?(?:throw|refuse\w*\()"  # what is refused
)
CONSTANT = re.compile(r"\bconstexpr\s+[\w:]+\s+(\w+\s*=\s*[^;]+);")
DEFINED = re.compile(r"(\w+)\s*=\s*([^,;]+)")
# Why a constant chooses no way -> file and constant.
NO_CHOICE = {
    "what is refused": {
        ("collective/device_schedule/direct_messages.cpp", "most"),
        ("collective/device_schedule/program_algorithm.cpp", "least_piece"),
        ("collective/device_schedule/program_algorithm.cpp", "most_piece"),
        ("comm/bootstrap/tcp.cpp", "255"),
        ("heap/heap_state.cpp", "largest"),
        ("offload/array_head.cpp", "largest_remote_array"),
        ("offload/array_head.cpp", "most_dimensions"),
        ("offload/kernel_code.cpp", "most_threads"),
        ("offload/request_stream.cpp", "longest_function_name"),
        ("offload/request_stream.cpp", "longest_number_name"),
        ("offload/server_connection.cpp", "shortest_key"),
        ("table/column_type.cpp", "4"),
    },
    "what something has room for": {
        ("collective/device_schedule/program.hpp", "Divider::end"),
        ("collective/device_schedule/translate.cpp", "most_kept"),
        ("collective/on_stream/description.cpp", "large_count"),
        ("comm/bootstrap/frame.cpp", "header_bytes"),
        ("comm/shared_memory/lane.hpp", "LaneWord::longest_same_tag"),
        ("comm/shared_memory/lane_mailbox.cpp", "most_in_mailbox"),
        ("heap/device/team.hpp", "team_packet_bytes"),
        ("heap/device/transfers.hpp", "bulk_stages"),
        ("offload/request_stream.cpp", "frame_room"),
        ("table/piece_blocks.cpp", "slab_bytes"),
    },
    "which instructions do the same": {
        ("collective/device_schedule/unit_moves.hpp", "4"),
        ("collective/fused/cuda/fused_kernels.cuh", "4"),
        ("collective/messages/message_landing.hpp", "most_short_piece"),
        ("comm/shared_memory/lane.hpp", "16"),
        ("comm/shared_memory/lane.hpp", "8"),
        ("comm/shared_memory/lane.hpp", "4"),
        ("comm/shared_memory/lane.hpp", "least_of_whole_lines"),
        ("heap/device/cuda_copy.cuh", "few"),
        ("heap/device/cuda_copy.cuh", "many"),
        ("table/pack_by_part.cpp", "at_once"),
        ("table/tile_sort.cpp", "few_parts"),
    },
    "how much is kept or named": {
        ("collective/group_core.cpp", "most_spare_executions"),
        ("comm/bootstrap/reception.cpp", "most_named"),
        ("comm/bootstrap/reception.cpp", "most_reasons"),
        ("comm/bootstrap/reception.cpp", "most_strangers"),
        ("comm/peer_memory/peer_memory.cpp", "always_known"),
        ("comm/peer_memory/peer_memory.cpp", "most_bytes_known"),
        ("comm/peer_memory/peer_memory.cpp", "most_known"),
        ("offload/gpu_work.cpp", "most_named"),
        ("table/piece_blocks.cpp", "most_free"),
    },
    "how far a program may be ahead": {
        ("collective/gpu/nccl_engine.cpp", "most_compared"),
        ("collective/proxy/stream_staging.cpp", "most_taken"),
    },
    "a variable that is called as a constant elsewhere": {("offload/array_staging.cpp", "bytes")},
}


def constants_of(text: str) -> dict[str, str]:
    """The constants that a file defines, with their expressions."""
    return {name: value for line in CONSTANT.findall(text) for name, value in DEFINED.findall(line)}


def choices_by(text: str, constants: dict[str, str]) -> list[str]:
    """The constants outside of the tables that sizes are compared with: numbers, or names that stand for numbers."""
    found = []
    for right, left in COMPARED.findall(NOT_CHOICES.sub("", text)):
        other = right or left
        if "defaults::" in other or other in ("0", "1", "2"):
            continue
        value = constants.get(other.rsplit("::", 1)[-1], "")
        if other[0].isdigit() or (value and "defaults::" not in value and re.search(r"\d", value)):
            found.append(other)
    return found


@pytest.mark.parametrize(
    "line",
    [
        "if (message.bytes <= 8192) return by_lane();",
        "if (region.bytes > longest) offer();",
        "bytes() >= 64'000 ? a : b",
        "run < shortest ? x : y",
        "return 4096 < given.size();",
        "if (shape.pairs_ <= 2 * longest) return narrow;",
    ],
)
def test_the_rule_refuses_a_constant(line: str) -> None:
    constants = constants_of("constexpr Bytes shortest = 4, longest = 16 << 10;")
    assert constants == {"shortest": "4", "longest": "16 << 10"}
    assert len(choices_by(line, constants)) == 1


def test_the_rule_passes_what_comes_from_a_table() -> None:
    constants = constants_of("inline constexpr std::size_t longest = defaults::lane_short;")
    for right in ("longest", "defaults::lane_short", "sizes_.lane", "0"):
        assert choices_by(f"if (message.bytes <= {right}) x();", constants) == [], right
    for line in (
        "for (int part = 0; part < 64; ++part) x();",
        "if (count > 4096) throw Error(f(count));",
        "f<4> bytes;",
    ):
        assert choices_by(line, {}) == [], line


def test_ways_are_chosen_by_the_plan_or_declared_defaults() -> None:
    texts = {str(path.relative_to(SOURCES)): without_comments(path.read_text()) for path in cpp_files()}
    texts = {name: text for name, text in texts.items() if name.split("/")[0] in ROOMS}
    found = set()
    for name, text in texts.items():
        folder = name.rpartition("/")[0]
        near = [other for file, other in texts.items() if file.endswith("hpp") and file.rpartition("/")[0] == folder]
        found |= {(name, other) for other in choices_by(text, constants_of("\n".join([*near, text])))}
    allowed = {each for constants in NO_CHOICE.values() for each in constants}
    assert sorted(found - allowed) == []
    assert allowed - found == set(), "an exception that is not needed"


def test_no_default_loses_its_source() -> None:
    tables = ("policy/defaults.hpp", "policy/message_defaults.hpp", "transport/defaults.hpp")
    text = " ".join((ROOT / "src/waywiser" / name).read_text() for name in tables)
    without = re.findall(r'"not recorded[^"]*"\s*}', text)
    assert without == []
