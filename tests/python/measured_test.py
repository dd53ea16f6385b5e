"""docs/measured.md: it names every file of results, and its figures are theirs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from quoted import RESULTS, ROOT, cells, text, value

PAGE = (ROOT / "docs/measured.md").read_text(encoding="utf-8")
ROWS = [cells(line) for line in PAGE.splitlines() if line.startswith("| ") and ".json" in line]
ALL_REDUCE = {"operation": "all_reduce", "bytes": 8}
EIGHT = {"name": "one way", "bytes": 8, "form": "put_packets", "scope": "thread"}
FACES = {"shape": "two faces of 64K", "variant": "whole_field", "how": "no graph"}
COURIER = {"processes": 1, "direction": "gpu>host", "bytes": 1024, "pauses": "0 to 3 us", "method": "courier"}
BEND = {"run": "navier_stokes_cuda --case bend --cells 8000000 --steps 8 --exchange auto"}
WITH_FIRST = "and the first all_reduce"
# File, way to the number in it, its factor to the unit of the page.
QUOTED: list[tuple[str, tuple[Any, ...], float]] = [
    ("group-2xh100.json", ("rows", {**ALL_REDUCE, "how": "graph", "by": "group"}, "us"), 1),
    ("group-2xh100.json", ("rows", {**ALL_REDUCE, "how": "graph", "by": "nccl"}, "us"), 1),
    ("group-2xh200.json", ("rows", {**ALL_REDUCE, "bytes": 16 << 20, "how": "graph", "by": "group"}, "us"), 1),
    ("group-2xh200.json", ("rows", {**ALL_REDUCE, "bytes": 16 << 20, "how": "graph", "by": "nccl"}, "us"), 1),
    ("collectives-4xh200.json", ("rows", {**ALL_REDUCE, "gpus": 4, "launch": "graph", "by": "packets"}, "us"), 1),
    ("collectives-4xh200.json", ("rows", {**ALL_REDUCE, "gpus": 4, "launch": "graph", "by": "nccl"}, "us"), 1),
    ("collectives-4xh100.json", ("rows", {"operation": "broadcast", "bytes": 4 << 20}, "us"), 1),
    ("collectives-4xh100.json", ("rows", {"operation": "broadcast", "bytes": 4 << 20}, "peers", "nccl"), 1),
    ("collectives-4xh100.json", ("rows", {"operation": "broadcast", "bytes": 16 << 20}, "us"), 1),
    ("collectives-4xh100.json", ("rows", {"operation": "broadcast", "bytes": 16 << 20}, "peers", "nccl"), 1),
    ("peers-2xh200-collectives.json", ("rows", {**ALL_REDUCE, "bytes": 65536, "mode": "stream"}, "us"), 1),
    ("peers-2xh200-collectives.json", ("rows", {**ALL_REDUCE, "bytes": 65536, "mode": "stream"}, "peers", "nccl"), 1),
    ("one-sided-2xh100.json", ("rows", EIGHT, "median"), 1),
    ("halo-2xh200.json", ("faces", FACES, "median_us"), 1),
    ("halo-mps-2xh200.jsonl", ({"processes_per_gpu": 2}, "tune", "shapes"), 1),
    ("sharing-h200.json", ("rows", {"processes": 4, "mps": False}, "us", "whole_field"), 1e-3),
    ("sharing-h200.json", ("rows", {"processes": 4, "mps": False}, "us", "packed"), 1e-3),
    ("sharing-h200.json", ("rows", {"processes": 4, "mps": True}, "us", "packed"), 1e-3),
    ("fused-2xh100.jsonl", ({"run": "moe_dispatch_cuda --blocks 32"}, "rows", {"way": "one_sided"}, "seconds"), 1e6),
    ("navier-stokes-bend-and-shared-h100.jsonl", ({**BEND, "gpus": 1}, "result", "median_seconds_per_step"), 1e3),
    ("navier-stokes-bend-and-shared-h100.jsonl", ({**BEND, "gpus": 2}, "result", "median_seconds_per_step"), 1e3),
    (
        "group-beside-nccl-2xh200.json",
        ("rows", {"operation": "all_to_all_v", "bytes": 8, "how": "graph", "by": "group"}, "us"),
        1,
    ),
    (
        "group-beside-nccl-2xh200.json",
        ("rows", {"operation": "all_to_all_v", "bytes": 8, "how": "graph", "by": "nccl"}, "us"),
        1,
    ),
    (
        "courier-rest-h200.json",
        ("rows", {"method": "courier: a put after 3 ms", "bytes": 8, "direction": "host>gpu"}, "p50"),
        1e6,
    ),
    ("torch-training-2xh200.json", ("geometric_means", "waywiser"), 1),
    ("torch-training-python-2xh200.json", ("geometric_means", "waywiser 0"), 1),
    ("torch-training-python-2xh200.json", ("geometric_means", "waywiser 16"), 1),
    ("torch-calls-2xh200.json", ("us", "all_reduce", "cpp"), 1),
    ("torch-calls-2xh200.json", ("us", "all_reduce", "python"), 1),
    ("torch-calls-2xh200.json", ("us", "all_reduce", "nccl"), 1),
    ("nccl-tuner-2xh200.json", ("means", "tuner"), 1),
    ("nccl-tuner-2xh200.json", ("means", "no plug-in again"), 1),
    ("torch-startup-2xh100.json", ("median seconds", "waywiser", WITH_FIRST), 1),
    ("torch-startup-2xh100.json", ("median seconds", "nccl", WITH_FIRST), 1),
    ("courier-h200.json", ("rows", COURIER, "p50"), 1e6),
    ("remote-memory-h100.json", ("of_the_local_pinned_rate", "pinned, up"), 1),
    ("host-pairs.json", ("rows", {"operation": "latency", "bytes": 8}, "us"), 1),
    ("host-pairs.json", ("rows", {"operation": "latency", "bytes": 8}, "peers", "openmpi"), 1),
    ("nixl-host.json", ("rows", {"case": "64 MiB"}, "ratio"), 1),
    ("nixl-2xh200.json", ("memories", "gpu0-gpu1", {"case": "4 KiB"}, "us"), 1),
    ("nixl-2xh200.json", ("memories", "gpu0-gpu1", {"case": "256 MiB"}, "us"), 1),
    ("nixl-2xh200.json", ("memories", "host-gpu0", {"case": "256 MiB"}, "us"), 1),
    ("nixl-host.json", ("rows", {"case": "1,000 ranges of 4 KiB"}, "ratio"), 1),
]


def test_it_names_every_file_of_results() -> None:
    named = re.findall(r"`([\w-]+\.jsonl?)`", PAGE)
    assert sorted(named) == sorted(file.name for file in RESULTS.iterdir())


@pytest.mark.parametrize(("file", "way", "factor"), QUOTED, ids=lambda each: each if isinstance(each, str) else "")
def test_its_figures_are_those_of_the_files(file: str, way: tuple[Any, ...], factor: float) -> None:
    (figure,) = [row[3] for row in ROWS if f"`{file}`" in row[-1]]
    wanted = text(value(file, *way) * factor)
    assert re.search(rf"\b{re.escape(wanted)}\b", figure), (wanted, figure)


def test_each_row_has_a_figure_that_is_compared_or_a_page() -> None:
    compared = {file for file, _, _ in QUOTED}
    without = [row[3] for row in ROWS if len(row) == 5 and not any(f"`{file}`" in row[-1] for file in compared)]
    assert all("](" in figure or not re.search(r"\d", figure) for figure in without), without


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(?:build/)?((?:scripts|benchmarks|apps)/\w[\w./]*)", PAGE))))
def test_its_programs_are_there(name: str) -> None:
    folder, _, program = name.partition("/")
    assert list((ROOT / folder).rglob(f"{program.removesuffix('_cuda')}*")), name


def test_its_lanes_are_those_of_the_last_results() -> None:
    lanes = (ROOT / "tests/long_results.md").read_text(encoding="utf-8")
    named = re.findall(r"\| ((?:`\w+`(?:, )?)+) in \[the slow lanes\]", PAGE)
    assert all(f"| {lane} |" in lanes for names in named for lane in re.findall(r"\w+", names)) and named


@pytest.mark.parametrize("figure", ["843 of 864", "2.5 %"])
def test_other_figures_are_those_of_their_pages(figure: str) -> None:
    assert figure in PAGE and any(
        figure in (ROOT / f"docs/{name}.md").read_text() for name in ("performance", "simulator")
    )
