"""The answers of `HaloExchange.tune()` in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rank_jobs import run, runtime_folder

__all__ = ["runtime_folder"]

PROGRAM = """
import json, os, numpy as np, waywiser as ww
group = ww.join()
def made(shape=(8, 9), kind=np.float64, ghost=1):
    grid = ww.GridPartition(group, shape, ghost=ghost)
    return ww.HaloExchange(group, grid, [np.zeros(grid.local_shape, kind)])
def exchanges(halo):
    return sum(halo.counts(name)["exchanges"] for name in ["whole_field", "per_neighbor", "packed"])
def attempt(call):
    try: call()
    except ww.Error as error: print(type(error).__name__, error)
"""
FAST = {"whole_field": 3e-5, "per_neighbor": 2e-5, "packed": 1e-5, "direct": None, "direct_packed": None}


def job(ranks: int, code: str) -> list[str]:
    ended, lines, errors = run(ranks, code, program=PROGRAM)
    assert ended == 0, errors
    return lines


def test_the_next_run_starts_with_the_answer() -> None:
    first = """
    halo = made()
    times = halo.tune(0.001, file="answers.json")
    assert exchanges(halo) >= 3 and "interleaved rounds" in halo.explain()
    if group.rank == 0: print(halo.variant, json.dumps(times))
    group.barrier()
    """
    (line,) = job(3, first)
    variant, _, times = line.partition(" ")
    assert Path("answers.json").exists()
    second = f"""
    halo = made()
    assert halo.tune(100, file="answers.json") == json.loads('{times}')
    assert exchanges(halo) == 0 and halo.variant == "{variant}"
    assert halo.explain().endswith("why: an earlier run's answer in answers.json"), halo.explain()
    halo.exchange()
    halo.use("whole_field")
    assert halo.explain() == "whole_field: asked for"
    halo.tune(0.001)
    assert "interleaved rounds" in halo.explain()
    group.barrier()
    """
    job(3, second)


def test_another_shape_is_measured_and_added() -> None:
    code = """
    folder = "results"
    if group.rank == 0: os.mkdir(folder)
    group.barrier()
    mesh = ww.MeshPartition(group, 2, [((group.rank + 1) % 2, [0], [1])])
    longer = ww.MeshPartition(group, 4, [((group.rank + 1) % 2, [0, 1], [2, 3])])
    for exchange in [made(), made((8, 10)), made(kind=np.float32), made(ghost=2),
                     ww.HaloExchange(group, mesh, [np.zeros(2)]), ww.HaloExchange(group, mesh, [np.zeros((2, 3))]),
                     ww.HaloExchange(group, longer, [np.zeros(4)])]:
        exchange.tune(0.001, file=folder)
        assert exchanges(exchange) > 0
        group.barrier()
    again = made()
    again.tune(0.001, file=folder)
    assert exchanges(again) == 0
    again.add(np.zeros(again.fields[0].shape, np.int8))
    assert "earlier" not in again.explain()
    again.tune(0.001, file=folder)
    assert exchanges(again) > 0
    group.barrier()
    """
    job(2, code)
    assert len(json.loads(Path("results/halo.json").read_text())["answers"]) == 8


def test_ranks_whose_files_differ_measure_again() -> None:
    code = """
    name = f"answers{group.rank}.json"
    made().tune(0.001, file=name)
    value = json.load(open(name))
    value["answers"][0].update(variant="packed", times=%r)
    if group.rank == 1: value["answers"][0]["times"]["packed"] = 9e-6
    json.dump(value, open(name, "w"))
    halo = made()
    halo.tune(0.001, file=name)
    assert exchanges(halo) > 0
    assert json.load(open("answers0.json")) == json.load(open("answers1.json")) or group.barrier() is None
    again = made()
    again.tune(0.001, file=name)
    assert exchanges(again) == 0
    group.barrier()
    """
    job(2, code % FAST)


def test_a_variant_that_is_unavailable_today_is_measured_again() -> None:
    code = """
    made().tune(0.001, file="answers.json")
    group.barrier()
    value = json.load(open("answers.json"))
    value["answers"][0].update(variant="direct", times={**value["answers"][0]["times"], "direct": 1e-6})
    group.barrier()
    if group.rank == 0: json.dump(value, open("answers.json", "w"))
    group.barrier()
    halo = made()
    halo.tune(0.001, file="answers.json")
    assert halo.variant != "direct" and exchanges(halo) > 0
    group.barrier()
    """
    job(2, code)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "answers1.json: not valid JSON: "),
        ('{"schema": "waywiser.profile", "version": 2}', '"schema" is "waywiser.profile", not "waywiser.halo_answers"'),
        ('{"schema": "waywiser.halo_answers", "version": 2}', '"version" is 2; this program reads 1'),
        (
            '{"schema": "waywiser.halo_answers", "version": 1, "answers": [{"shape": "x", "variant": "best"}]}',
            'answers1.json: answers[0]: "times" is missing',
        ),
        (
            '{"schema": "waywiser.halo_answers", "version": 1, '
            '"answers": [{"shape": "x", "variant": "packed", "times": {}}]}',
            "answers1.json: answers[0]: the times lack the variant packed",
        ),
        (
            '{"schema": "waywiser.halo_answers", "version": 1, '
            '"answers": [{"shape": "x", "variant": "packed", "times": {"packed": -1}}]}',
            "packed: must be a number above 0",
        ),
    ],
)
def test_a_file_of_one_rank_that_is_none_is_refused_at_all(text: str, why: str) -> None:
    Path("answers1.json").write_text(text)
    lines = job(2, """
    halo = made()
    attempt(lambda: halo.tune(0.001, file=f"answers{group.rank}.json"))
    halo.exchange()
    group.barrier()
    """)  # fmt: skip
    assert len(lines) == 2 and lines[0] == lines[1]
    assert lines[0].startswith("InputError rank 1: answers1.json: ") and why in lines[0]


def test_a_place_that_cannot_be_written_is_one_line() -> None:
    Path("file").write_text("")
    lines = job(2, """
    halo = made()
    attempt(lambda: halo.tune(0.001, file="file/answers.json"))
    halo.exchange()
    group.barrier()
    """)  # fmt: skip
    assert len(lines) == 2 and lines[0].startswith("InputError rank 0: file/answers.json: cannot write: ")


def test_places_of_arrays() -> None:
    code = """
    from array import array
    gpus = ww.virtual_gpus(2)
    from waywiser.halo.kept_answers import place_of
    assert place_of(np.zeros(2)) == place_of(array("d", [1])) == place_of(bytearray(2)) == "host"
    assert place_of(gpus.empty(3, gpu=1)) == "virtual_gpu:1"
    mesh = ww.MeshPartition(group, 2, [(0, [0], [1])])
    halo = ww.HaloExchange(group, mesh, [array("d", [1, 2])])
    halo.tune(0.001, file="answers.json")
    group.barrier()
    """
    job(1, code)
