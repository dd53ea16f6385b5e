"""The answers of `HaloExchange.tune()` in a file."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rank_jobs import COMMAND, NO_PLAN, ROOT, run, runtime_folder

jsonschema = pytest.importorskip("jsonschema")

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow

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
SCHEMA = ROOT / "python/waywiser/schemas/plan.json"
PLAN = {"schema": "waywiser.plan", "version": 3, "fingerprint": "a", "machine": "a", "backend": "host"}
PLAN |= {"simulated": False, "other_nodes": []}


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
    jsonschema.validate(json.loads(Path("answers.json").read_text()), json.loads(SCHEMA.read_text()))
    second = f"""
    halo = made()
    known, was = halo.tune(100, file="answers.json"), json.loads('{times}')
    assert known.keys() == was.keys()
    assert all(known[name] == was[name] or abs(known[name] / was[name] - 1) < 1e-9 for name in was), (known, was)
    assert exchanges(halo) == 0 and halo.variant == "{variant}"
    assert "\\nwhy: an earlier run's answer in answers.json" in halo.explain(), halo.explain()
    halo.exchange()
    halo.use("whole_field")
    assert halo.explain() == "whole_field: asked for"
    halo.tune(0.001)
    assert "interleaved rounds" in halo.explain()
    group.barrier()
    """
    job(3, second)


def test_answers_hold_for_one_setting_of_peer_access() -> None:
    program = """
    import os, numpy as np, waywiser as ww
    gpus = ww.virtual_gpus(2)
    group = ww.join(gpus=gpus)
    grid = ww.GridPartition(group, (8, 9), ghost=1)
    halo = ww.HaloExchange(group, grid, [gpus.array(np.zeros(grid.local_shape), group.rank)])
    halo.tune(0.001, file="answers.json")
    if group.rank == 0: print("earlier" in halo.explain())
    group.barrier()
    """
    off = "import os\nos.environ['WAYWISER_PEER_ACCESS'] = 'off'\n"
    for before, said in [("", "False"), ("", "True"), (off, "False"), (off, "True"), ("", "True")]:
        code, lines, errors = run(2, program, program=before)
        assert (code, lines) == (0, [said]) and errors in ("", NO_PLAN), errors
    rows = json.loads(Path("answers.json").read_text())["rows"]
    assert len(rows) == 2 and all(row["why"].endswith("virtual GPUs, which say nothing about GPUs") for row in rows)


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
    again.add(np.zeros(again.fields[0].shape, np.int8))  # tunes again
    assert "earlier" not in again.explain() and exchanges(again) > 0
    before = exchanges(again)
    again.tune(0.001, file=folder)
    assert "earlier" in again.explain() and exchanges(again) == before
    again.use("packed")
    again.add(np.zeros(again.fields[0].shape, np.int8))
    assert again.variant == "packed" and "not measured" in again.explain()
    group.barrier()
    """
    job(2, code)
    assert len(json.loads(Path("results/plan.json").read_text())["rows"]) == 8
    words = [*COMMAND, "explain", "halo", "--results", "results"]
    told = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=60, check=True).stdout
    rows = json.loads(told)
    assert len(rows) == 8 and all(row["ways"][0]["way"] == row["chosen"] and row["ranks"] == 2 for row in rows)
    assert all(way["seconds"] > 0 for row in rows for way in row["ways"])
    shown = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
    assert shown.count("halo exchange ") == 8 and "interleaved rounds" in shown


def test_ranks_whose_files_differ_measure_again() -> None:
    code = """
    name = f"answers{group.rank}.json"
    made().tune(0.001, file=name)
    value = json.load(open(name))
    value["rows"][0]["ways"] = [dict(way=way, ratio=ratio) for way, ratio in dict(packed=1, per_neighbor=2).items()]
    if group.rank == 1: value["rows"][0]["ways"][1]["ratio"] = 1.5
    json.dump(value, open(name, "w"))
    halo = made()
    halo.tune(0.001, file=name)
    assert exchanges(halo) > 0
    group.barrier()  # both files are written
    assert json.load(open("answers0.json")) == json.load(open("answers1.json"))
    again = made()
    again.tune(0.001, file=name)
    assert exchanges(again) == 0
    group.barrier()
    """
    job(2, code)


def test_a_variant_that_is_unavailable_today_is_measured_again() -> None:
    code = """
    made().tune(0.001, file="answers.json")
    group.barrier()
    value = json.load(open("answers.json"))
    value["rows"][0]["ways"].insert(0, dict(way="direct", ratio=1))
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
        ("{", "answers1.json: not JSON: "),
        (
            json.dumps({"schema": "waywiser.profile", "version": 2}),
            "schema is 'waywiser.profile', expected 'waywiser.plan'",
        ),
        (json.dumps({**PLAN, "version": 4, "rows": []}), "version 4 of waywiser.plan cannot be read here"),
        (json.dumps({**PLAN, "version": 2, "rows": []}), "`waywiser plan` makes one from its profile"),
        (json.dumps({**PLAN, "rows": [{"operation": "halo"}]}), "answers1.json: rows[0]: 'memory' is missing"),
    ],
)
def test_a_plan_of_one_rank_that_is_none_is_refused_at_all(text: str, why: str) -> None:
    Path("answers1.json").write_text(text)
    lines = job(2, """
    halo = made()
    attempt(lambda: halo.tune(0.001, file=f"answers{group.rank}.json"))
    halo.exchange()
    group.barrier()
    """)  # fmt: skip
    assert len(lines) == 2 and lines[0] == lines[1]
    assert lines[0].startswith("InputError rank 1: answers1.json: ") and why in lines[0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("ways=[dict(way='best', ratio=1)]", "best: is no variant of a halo exchange"),
        (
            "ways=[dict(way='mixed(-1=direct,other=packed)', ratio=1)]",
            "a kind of sides is a hexadecimal number, not -1",
        ),
        ("ways=[dict(way='mixed(ab=direct)', ratio=1)]", "a mix names the variant of its other sides"),
        ("expected=[]", "it has one expected time"),
        ("ways=[dict(way='packed', ratio=1), dict(way='direct', ratio=None)]", "its way 'direct' has no ratio"),
    ],
)
def test_a_row_of_one_rank_that_is_none_is_refused_at_all(change: str, why: str) -> None:
    lines = job(2, f"""
    name = f"answers{{group.rank}}.json"
    made().tune(0.001, file=name)
    value = json.load(open(name))
    if group.rank == 1: value["rows"][0].update({change})
    json.dump(value, open(name, "w"))
    halo = made()
    attempt(lambda: halo.tune(0.001, file=name))
    halo.exchange()
    group.barrier()
    """)  # fmt: skip
    assert len(lines) == 2 and lines[0] == lines[1]
    assert lines[0].startswith("InputError rank 1: answers1.json: rows[0]: ") and why in lines[0]


def test_a_place_that_cannot_be_written_is_one_line() -> None:
    Path("file").write_text("")
    lines = job(2, """
    halo = made()
    attempt(lambda: halo.tune(0.001, file="file/answers.json"))
    halo.exchange()
    group.barrier()
    """)  # fmt: skip
    assert len(lines) == 2 and lines[0].startswith("TransferError rank 0: cannot write file/answers.json: ")


def test_places_of_arrays() -> None:
    code = """
    from array import array
    mesh = ww.MeshPartition(group, 2, [(0, [0], [1])])
    def known(field):
        halo = ww.HaloExchange(group, mesh, [field])
        halo.tune(0.001, file="answers.json")
        return "earlier" in halo.explain()
    assert not known(array("d", [1, 2])) and known(np.zeros(2))
    assert not known(gpus.empty(2, np.float64, gpu=1)) and known(gpus.empty(2, np.float64, gpu=1))
    group.barrier()
    """
    ended, lines, errors = run(
        1, code, program=PROGRAM.replace("ww.join()", "ww.join(gpus=(gpus := ww.virtual_gpus(2)))")
    )
    assert (ended, lines) == (0, []), errors


def test_a_mix_is_kept() -> None:
    code = """
    made().tune(0.001, file="answers.json")
    halo = made((40, 40))
    sides = [each.face for each in halo.sides]
    halo.tune(0.001, file="answers.json")
    group.barrier()
    value = json.load(open("answers.json"))
    group.barrier()
    if group.rank == 0:
        # bits of a kind: one, same machine, contiguous, 6 of the magnitude, 4 of the dimensions, 4 of the face
        def kind(magnitude, contiguous, face):
            return f"{((((2 | 1) << 1 | contiguous) << 6 | magnitude) << 4 | 2) << 4 | face:x}"
        mix = f"mixed({kind(7, 1, 0b1000)}=per_neighbor,other=packed)"
        value["rows"][1]["ways"].insert(0, dict(way=mix, ratio=1))
        value["rows"][1]["expected"][0]["seconds"] = 1e-6
        json.dump(value, open("answers.json", "w"))
    group.barrier()
    halo = made((40, 40))
    times = halo.tune(0.001, file="answers.json")
    assert halo.variant == "mixed" and times["mixed"] == 1e-6 and exchanges(halo) == 0, halo.explain()
    assert {each.face[0] != 0: each.variant for each in halo.sides if 0 in each.face} == {
        True: "per_neighbor", False: "packed"}
    halo.exchange()
    group.barrier()
    """
    job(4, code)
