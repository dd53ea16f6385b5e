"""`waywiser bench coalescing`: figures, tables, pictures."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from waywiser.bench.coalescing import Point, as_csv, crossover, tables

COMMAND = [sys.executable, "-c", "from waywiser.cli import main; main()", "bench"]
SMALL = ("coalescing", "--sizes", "4K,8K", "--blocks", "4,8", "--budget", "0.2")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=100, check=False)


def row(*changes: float, block: int = 4096, memory: str = "gpu>host") -> list[Point]:
    return [
        Point(memory, block, 4 * (i + 1), change, change, change, 2e-6, 1e-6, 5) for i, change in enumerate(changes)
    ]


def test_the_crossover_is_where_gathering_begins_to_win() -> None:
    assert crossover(row(-3, -1, 2, 4)) == "from 12"
    assert crossover(row(1, 2)) == "always"
    assert crossover(row(-1, 0)) == "never"
    assert crossover(row(1, -2, 3)) == "mixed"
    assert crossover(row(1, -2)) == "mixed"


def interval(*bounds: tuple[float, float]) -> list[Point]:
    return [
        Point("host>host", 4096, 4 * (i + 1), (low + high) / 2, low, high, 2e-6, 1e-6, 5)
        for i, (low, high) in enumerate(bounds)
    ]


@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ([(-60, -40), (-60, -40), (-66, 90)], "not shown"),  # the last one's middle is above 0
        ([(-60, -40), (-66, 60)], "not shown"),
        ([(-1, 2), (-2, 1)], "not shown"),
        ([(-60, -40), (-2, 1), (5, 9), (1, 2)], "from 12"),
        ([(-2, 9), (5, 9)], "from 8"),
        ([(1, 9), (5, 9)], "always"),
        ([(-9, -1), (-5, -0.1)], "never"),
        ([(1, 9), (-5, -1), (1, 2)], "mixed"),
        ([(-9, -1), (1, 9), (-5, 6), (1, 2)], "from 8, not shown for all"),
    ],
)
def test_the_crossover_follows_the_intervals(bounds: list[tuple[float, float]], verdict: str) -> None:
    assert crossover(interval(*bounds)) == verdict


def test_a_figure_whose_interval_has_0_inside_is_marked() -> None:
    (line,) = [each for each in tables(interval((-60, -40), (-66, 90)), "") if each.startswith("4 KiB")]
    assert line == "4 KiB       -50.0 +12.0?   not shown"


def test_tables_and_csv_have_the_figures() -> None:
    found = [*row(-45.2, 3.408), *row(-50, -60, block=1 << 20)]
    assert tables(found, ", MADE UP") == [
        "# gpu>host: percent of speed gained by gathering blocks, MADE UP",
        "# Block         4      8   gathering is faster",
        "4 KiB       -45.2   +3.4   from 8",
        "1 MiB       -50.0  -60.0   never",
    ]
    assert as_csv(found, "").splitlines()[:2] == [
        "memory,block_kib,blocks,speed_change_percent,apart_us,gathered_us,label",
        "gpu>host,4,4,-45.200,2,1,",
    ]


@pytest.mark.slow
def test_host_memory_is_measured() -> None:
    done = run(*SMALL, "--json", "--backend", "host")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert value["backend"] == "host" and "warning" not in value
    assert [(each["memory"], each["block_bytes"], each["blocks"]) for each in value["rows"]] == [
        ("host>host", size, count) for size in (4096, 8192) for count in (4, 8)
    ]
    for each in value["rows"]:
        assert each["low"] <= each["speed_change_percent"] <= each["high"] and each["samples"] >= 5
        assert each["apart_us"] > 0 and each["gathered_us"] > 0


@pytest.mark.slow
def test_virtual_gpus_are_measured_labelled_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    picture = tmp_path / "map.svg"
    done = run(*SMALL, "--csv", "--backend", "virtual_gpu", "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    lines = list(csv.DictReader(done.stdout.splitlines()))
    assert list(dict.fromkeys(each["memory"] for each in lines)) == ["host>host", "host>gpu", "gpu>host", "gpu>gpu"]
    assert all("virtual" in each["label"].lower() for each in lines) and len(lines) == 16
    assert picture.read_text().startswith("<?xml")
    one = run(*SMALL, "--backend", "virtual_gpu", "--memory", "gpu-to-host", "--plot", str(tmp_path / "map.png"))
    assert one.returncode == 0 and one.stdout.startswith("# gpu>host: percent of speed gained by gathering blocks, ")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("coalescing", "latency"), "coalescing: time it alone"),
        (("coalescing", "-n", "2"), "--ranks is not for coalescing, which copies within one process"),
        (("coalescing", "--blocks", "4,x"), "--blocks 'x': write numbers from 1 to 4096, such as 4,16,80"),
        (("coalescing", "--blocks", "4096", "--sizes", "1M"), "all blocks together have 1 byte to 1 GiB"),
        (("coalescing", "--memory", "exposed"), "--memory 'exposed': write some of host-to-host,host-to-gpu"),
        (("coalescing", "--backend", "host", "--memory", "gpu-to-gpu"), "--backend host has no GPU memory"),
        (("coalescing", "--json", "--csv"), "--json and --csv: write one of them"),
        (("latency", "--blocks", "4"), "--blocks and --plot are for `waywiser bench coalescing`"),
    ],
)
def test_what_does_not_fit_is_one_line(arguments: tuple[str, ...], why: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert why in done.stderr


@pytest.mark.slow
def test_a_picture_needs_a_name_with_an_ending() -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    done = run(*SMALL, "--plot", "map.txt")
    assert done.returncode == 2 and "write a name that ends with .png, .svg, .pdf" in done.stderr
