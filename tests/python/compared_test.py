"""docs/comparison.md: its tables are those of the files, and what it says of others has a source."""

from __future__ import annotations

import re

import pytest
from quoted import ROOT, cells, text, value

PAGE = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")
OTHERS = ["NCCL", "UCX", "MPI", "NVSHMEM", "MSCCL++", "NIXL", "nvbandwidth"]
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
GRAPH = {"operation": "all_reduce", "mode": "graph"}
# Row of a table -> the fields of its rows in the file, and the way to the number in such a row.
ROWS: dict[tuple[str, str], tuple[dict[str, str], list[str]]] = {
    ("group-2xh100.json", "Waywiser"): ({"operation": "all_reduce", "how": "graph", "by": "group"}, ["us"]),
    ("group-2xh100.json", "NCCL 2.28.9"): ({"operation": "all_reduce", "how": "graph", "by": "nccl"}, ["us"]),
    ("host-pairs.json", "Waywiser"): ({"operation": "latency"}, ["us"]),
    ("host-pairs.json", "Open MPI 4.1.4"): ({"operation": "latency"}, ["peers", "openmpi"]),
    ("host-pairs.json", "Open MPI 4.1.4, `pml ucx`"): ({"operation": "latency"}, ["peers", "openmpi+ucx"]),
    ("peers-2xh200-collectives.json", "Waywiser"): (GRAPH, ["us"]),
    ("peers-2xh200-collectives.json", "NVSHMEM 3.4.5"): (GRAPH, ["peers", "nvshmem"]),
    ("peers-2xh200-collectives.json", "NVSHMEM 3.4.5 with NCCL"): (GRAPH, ["peers", "nvshmem+nccl"]),
    ("peers-2xh200-collectives.json", "PyTorch 2.11 symmetric memory, one shot"): (GRAPH, ["peers", "torch-one-shot"]),
}
TABLES = {
    file: [cells(line) for line in table.splitlines() if line.startswith("| ")]
    for file, table in re.findall(r"<!-- figures: (\S+) -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
}


def section(name: str) -> str:
    return PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", OTHERS)
def test_each_of_the_others_has_its_source_and_both_sides(name: str) -> None:
    said = section(name)
    assert "](https://" in said
    assert "**It has, we do not**" in said and "**We have, it does not**" in said


def test_all_rows_of_its_tables_are_compared() -> None:
    assert [(file, row[0]) for file, rows in TABLES.items() for row in rows[1:]] == list(ROWS)


@pytest.mark.parametrize(("file", "name"), ROWS, ids=" ".join)
def test_its_figures_are_those_of_the_files(file: str, name: str) -> None:
    sizes = [int(number) * UNITS[unit] for number, unit in (cell.split() for cell in TABLES[file][0][1:])]
    (shown,) = [row[1:] for row in TABLES[file] if row[0] == name]
    fields, way = ROWS[file, name]
    assert shown == [text(value(file, "rows", {**fields, "bytes": size}, *way)) for size in sizes]
