"""A size that chooses a way stands in a table of defaults or comes from the plan; nowhere else."""

from __future__ import annotations

import re

import pytest
from layering_test import ROOT, SOURCES, cpp_files, without_comments

ROOMS = ("comm", "group", "collective", "heap", "halo")
COMPARED = re.compile(r"\bbytes\w*(?:\(\))?\s*(?:<=|<|>=|>)\s*([\w:']+)")
CONSTANT = re.compile(r"\bconstexpr\s+[\w:]+\s+(\w+\s*=\s*[^;]+);")
DEFINED = re.compile(r"(\w+)\s*=\s*([^,;]+)")
# Constant that bytes are compared with -> why it chooses no way.
NO_CHOICE = {
    ("comm/shared_memory/lane.hpp", "16"): "how the same copy is written",
    ("comm/shared_memory/lane.hpp", "8"): "how the same copy is written",
    ("comm/shared_memory/lane.hpp", "4"): "how the same copy is written",
    ("comm/shared_memory/lane.hpp", "least_of_whole_lines"): "how the ring is cleared",
    ("comm/shared_memory/lane.hpp", "LaneWord::longest_same_tag"): "what a word has room for",
    ("comm/peer_memory/peer_memory.cpp", "most_bytes_known"): "what is remembered",
    ("collective/device_schedule/direct_messages.cpp", "most"): "what is refused",
    ("collective/device_schedule/program.hpp", "Divider::end"): "what 32 bits hold",
    ("collective/proxy/stream_staging.cpp", "most_taken"): "how far a program may be ahead of its stream",
    ("heap/heap_state.cpp", "largest"): "what is refused",
    ("heap/device/cuda_heap_block.cuh", "few"): "how the same copy is written",
}
UNSOURCED = 26  # defaults whose reason is not known; the number only falls


def constants_of(text: str) -> dict[str, str]:
    """The constants that a file defines, with their expressions."""
    return {name: value for line in CONSTANT.findall(text) for name, value in DEFINED.findall(line)}


def choices_by(text: str, constants: dict[str, str]) -> list[str]:
    """The constants outside of the tables that bytes are compared with: numbers, or names that stand for numbers."""
    found = []
    for other in COMPARED.findall(text):
        if "defaults::" in other or other in ("0", "1"):
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


def test_ways_are_chosen_by_the_plan_or_declared_defaults() -> None:
    texts = {str(path.relative_to(SOURCES)): without_comments(path.read_text()) for path in cpp_files()}
    texts = {name: text for name, text in texts.items() if name.split("/")[0] in ROOMS}
    found = set()
    for name, text in texts.items():
        folder = name.rpartition("/")[0]
        near = [other for file, other in texts.items() if file.endswith("hpp") and file.rpartition("/")[0] == folder]
        found |= {(name, other) for other in choices_by(text, constants_of("\n".join([*near, text])))}
    assert sorted(found - NO_CHOICE.keys()) == []
    assert NO_CHOICE.keys() - found == set(), "an exception that is not needed"


def test_no_default_loses_its_source() -> None:
    tables = ("policy/defaults.hpp", "policy/message_defaults.hpp", "transport/defaults.hpp")
    text = " ".join((ROOT / "src/waywiser" / name).read_text() for name in tables)
    without = re.findall(r'"not recorded[^"]*"\s*}', text)
    assert len(without) <= UNSOURCED
