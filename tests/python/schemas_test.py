"""The JSON Schemas: every file that the package writes is valid, and a file that its reader refuses is not."""

from __future__ import annotations

import copy
import gzip
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import made_up
import made_up_job
import made_up_network
import pytest
from made_up_benchmark import BASE, SETTINGS, Made, quiet
from verb_runs import Run

from waywiser.apply.setting import Setting, Settings
from waywiser.bench import coalescing, merge, sharing, with_compute
from waywiser.bench import offload as bench_offload
from waywiser.bench.offload_rows import Rows
from waywiser.bench.outcome import JSON
from waywiser.monitor.counters import Sample
from waywiser.network.faults import name_faults
from waywiser.network.flower import entries_of
from waywiser.network.judging import Counted
from waywiser.network.policy_reader import parse_policy
from waywiser.network.proof_shown import proofs_json
from waywiser.network.proving import prove as prove_network
from waywiser.network.shown import steering_json
from waywiser.network.steering import look
from waywiser.network.traffic_control import Dump
from waywiser.network.undoing import kept_json
from waywiser.offload.client import POINTS
from waywiser.prove import benchmarks, program_proof
from waywiser.prove.evidence import evidence_json
from waywiser.prove.message_sizes import MessageSizes
from waywiser.prove.program_sent import Sent
from waywiser.prove.prove import prove
from waywiser.prove.transport_counters import CountedBenchmark
from waywiser.results import MACHINES
from waywiser.run.watch import Watched
from waywiser.running.mechanisms import Moved
from waywiser.running.shown import as_json

jsonschema = pytest.importorskip("jsonschema")
Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python/waywiser"
SCHEMAS = PACKAGE / "schemas"
NAMES = sorted(file.stem for file in SCHEMAS.glob("*.json"))
NO_DOCUMENTS = {"cu", "errors", "toml"}  # what NVRTC compiles for Numba, a module, the configuration file
INTERNAL = {"parts", "storage_parts", "data_sheets", "figures"}  # own tables, which nothing else reads


@cache
def validator(name: str) -> Any:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def wrong(value: Json) -> list[str]:
    """What is wrong with a document, by the schema that it names."""
    name = str(value["schema"]).removeprefix("waywiser.")
    return [f"{one.json_path}: {one.message[:200]}" for one in validator(name).iter_errors(value)]


def read(file: Path) -> Json:
    data = file.read_bytes()
    value: Json = json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
    return value


def evidence() -> Json:
    groups = benchmarks.groups_of(SETTINGS.settings, "openmpi")
    benchmark = CountedBenchmark(Made(), Sample)
    proof = prove(groups, benchmark, 5, BASE, quiet)
    value: Json = json.loads(evidence_json(SETTINGS, "openmpi", [proof], benchmark, {"load": "0"}, ["a", "b"]))
    return value


def watched() -> Json:
    value: Json = json.loads(Watched(1.5, 2, {"nvlink": 1 << 30}, ("gdr",), (), "node", 2).to_json())
    return value


def plan() -> Json:
    """With a row of each kind; by hand those that programs add."""
    value = made_up.plan(made_up.profile())
    added = {"from_bytes": 0, "to_bytes": 1 << 40, "expected": [{"bytes": 4096, "seconds": 1e-5}], "why": "made up"}
    halo = {"operation": "halo", "memory": "host", "ranks": 1, "shape": "0123456789abcdef"}
    mix = made_up.ways("mixed(ab=per_neighbor,other=packed)", "packed", 1.1)
    remote = {"operation": "remote_input_plain", "memory": "gpu", "ranks": 2, "partner": "10.0.0.5:7421 gpu0"}
    rows = [{**halo, **added, "ways": mix}, {**remote, **added, "ways": made_up.ways("pinned")}]
    return {**value, "rows": [*value["rows"], *rows]}


def offload() -> Json:
    written: list[str] = []
    rows = Rows(JSON, "virtual_gpu", "virtual GPUs", ["staged"], written.append, {"lo": "loopback"}, {"eth0": "why"})
    spans = tuple((float(i), i + 1.0) for i in range(len(POINTS) - 1))
    run = bench_offload.Run((10.0, 9.0, 8.0, 4.0, 3.0, 2.0, 20.0), 50.0, spans, 1e-6)
    rows.add(bench_offload.Case("staged", 1000, 2, run, 3))
    rows.end()
    value: Json = json.loads("".join(written))
    return value


def coalesced() -> Json:
    point = coalescing.Point("host to host", 4096, 8, -12.5, -14.0, -11.0, 2e-5, 3e-5, 40)
    value: Json = json.loads(coalescing.as_json([point], "virtual_gpu", "virtual GPUs", {"a": "b"}))
    return value


def shared() -> Json:
    point = sharing.Point(True, 2, {"packed": 2e-5}, 40)
    return dict(json.loads(sharing.as_json([point], "virtual_gpu", "virtual GPUs", {"a": "b"})))


def merged() -> Json:
    measured = merge.Case("plan", 2, 1 << 20, 0.3, 0.2, 0.1, {"copies": 4096}, 3, 99)
    part = {"part": "a", "parameter": "b", "what": "c", "assumed": "d"}
    simulated = merge.Case("tcp", 8, 1 << 20, 0.3, 0.3, 0.0, {"p": 56}, simulated=True, published=1e9, assumed=[part])
    value: Json = json.loads(merge.as_json([measured, simulated], "simulated", "simulated x", {"a": "b"}))
    return value


def program() -> Json:
    """As `verify -- PROGRAM` keeps it."""
    settings = Settings("f", "here", settings=(Setting("ucx", "UCX_TLS", "x", "", "made up", "UCX_TLS", proof="won"),))
    proof = program_proof.prove_program(lambda told: {("program", 0): 1.0}, settings.environment(), 4, quiet)
    moved = Moved("TCP over lo", "ranks 0 and 1", None, 0.0, "kernel")
    sent = {program_proof.OURS: Sent((moved,), "", (MessageSizes("MPI messages", {0: 1, 21: 2}),), 3, (1,))}
    made = program_proof.ProgramProof("p", ["p"], program_proof.Metric.of("", False), settings, proof, sent)
    value: Json = json.loads(made.as_json())
    return value


def running_job() -> Json:
    rank = made_up_job.MadeRank([made_up_job.LIBNCCL], {"NCCL_SHM_DISABLE": "1"}, peers=[made_up_job.Peer(1, 1 << 30)])
    job = made_up_job.MadeJob([rank, made_up_job.MadeRank([made_up_job.LIBNCCL])])
    folder = Path(tempfile.mkdtemp(prefix="waywiser-job-"))
    try:
        value: Json = json.loads(as_json(*made_up_job.look_at(folder, job)))
    finally:
        shutil.rmtree(folder)
    return value


def network() -> Json:
    folder = Path(tempfile.mkdtemp(prefix="waywiser-network-"))
    try:
        steering = look(made_up_network.machine(folder, made_up_network.commands(offload="off")))
    finally:
        shutil.rmtree(folder)
    value: Json = json.loads(steering_json(steering, name_faults(steering)))
    return value


def network_proof() -> Json:
    folder = Path(tempfile.mkdtemp(prefix="waywiser-network-"))
    try:
        steering, proofs = prove_network(made_up_network.machine(folder, made_up_network.commands()), "", False, 0.0)
    finally:
        shutil.rmtree(folder)
    counted = [replace(proofs[0], counted=Counted(1000, 1000, 0, 1000, seen)) for seen in (0, None)]
    value: Json = json.loads(proofs_json(steering, [*proofs, *counted], False))
    return value


def network_undo() -> Json:
    entries = entries_of(parse_policy("rules: [{on: va, do: drop}]", "made up"))
    value: Json = json.loads(kept_json(entries, {"va": Dump("[]", "[]")}))
    return value


BESIDE = with_compute.Row("all_reduce", 4096, 16, "matmul", 10, 3, *[1e-5] * 5)
MADE: dict[str, Callable[[], Json]] = {
    "topology": made_up.topology,
    "profile": made_up.profile,
    "plan": plan,
    "verification": lambda: made_up.verification(made_up.plan(made_up.profile())),
    "peers": lambda: read(MACHINES / "recorded-4xh200/peers.json"),
    "costs": lambda: read(PACKAGE / "simulator/calibrated/recorded-4xh200.json"),
    "settings": lambda: json.loads(SETTINGS.to_json()),
    "evidence": evidence,
    "watch": watched,
    "job": running_job,
    "offload": offload,
    "program": program,
    "coalescing": coalesced,
    "sharing": shared,
    "merge": merged,
    "with_compute": lambda: json.loads(with_compute.as_json([BESIDE], "host", "", {})),
    "network": network,
    "network_proof": network_proof,
    "network_undo": network_undo,
    "root": lambda: {"schema": "waywiser.root", "version": 1, "commands": {"dmesg": None}, "spaces": {"/dev": [2, 1]}},
}


def shipped() -> Iterator[Path]:
    """Every file of the package that has a schema."""
    for file in sorted(PACKAGE.rglob("*.json*")):
        if file.parent != SCHEMAS and file.stem not in INTERNAL and "schema" in read(file):
            yield file


def test_every_schema_has_its_name_and_every_document_its_schema() -> None:
    for name in NAMES:
        assert validator(name).schema["properties"]["schema"] == {"const": f"waywiser.{name}"}
    sources = [*PACKAGE.rglob("*.py"), *(ROOT / "src").rglob("*.cpp")]
    named = {name for file in sources for name in re.findall(r'"waywiser\.(\w+)"', file.read_text())}
    assert named - INTERNAL - NO_DOCUMENTS == set(NAMES)


@pytest.mark.parametrize("file", list(shipped()), ids=lambda file: "/".join(file.parts[-2:]))
def test_files_of_the_package(file: Path) -> None:
    assert wrong(read(file)) == []


@pytest.mark.parametrize("name", MADE)
def test_documents_that_programs_make(name: str) -> None:
    value = MADE[name]()
    assert value["schema"] == f"waywiser.{name}" and wrong(value) == []


@pytest.mark.parametrize("name", MADE)
def test_a_broken_document_is_refused(name: str) -> None:
    """Each needed field left out, and each field with a value of another type."""
    value = {key: one[:3] if isinstance(one, list) else one for key, one in MADE[name]().items()}
    assert wrong(value) == []
    for key in validator(name).schema["required"]:
        if key != "schema":
            assert wrong({k: v for k, v in value.items() if k != key}), key
    for key in value:
        if key not in ("schema", "state"):
            assert wrong({**value, key: object}), key  # of no JSON type
    assert wrong({**value, "version": 99})


@pytest.mark.parametrize(
    ("name", "spoil", "where"),
    [
        ("profile", lambda v: v["series"][0]["points"][0].update(seconds=0), "$.series[0].points[0].seconds"),
        ("profile", lambda v: v["series"][0].update(operation="fast"), "$.series[0].operation"),
        ("plan", lambda v: v["rows"][0].update(processes=3), "$.rows[0].processes"),
        ("topology", lambda v: v.update(kind="guessed"), "$.kind"),
        ("settings", lambda v: v["settings"][0].update(name="LD_PRELOAD"), "$.settings[0].name"),
        ("verification", lambda v: v["rows"][0].pop("ratio"), "$.rows[0]"),
    ],
)
def test_what_the_readers_refuse(name: str, spoil: Callable[[Json], object], where: str) -> None:
    value = copy.deepcopy(MADE[name]())
    spoil(value)
    assert [line.partition(":")[0] for line in wrong(value)] == [where]


@pytest.mark.slow
def test_what_this_machine_writes(run: Run, tmp_path: Path) -> None:
    folder = str(tmp_path / "results")
    measured = ["measure", "--quick", "--budget", "3", "--operations", "latency", "--backend", "host"]
    assert run(*measured, "--results", folder)[0] == 0
    assert run("plan", "--results", folder)[0] == 0
    for name in ("topology", "profile", "plan"):
        assert wrong(read(tmp_path / "results" / f"{name}.json")) == []


@pytest.mark.parametrize(
    "command",
    [
        ["doctor", "--only", "libraries,environment", "--json"],
        ["monitor", "--once", "--seconds", "0.1", "--json", "--job", "7"],
        ["bench", "all_reduce", "--machine", "hse-a", "--sizes", "8,1K", "--json"],
        ["simulate", "step", "--machine", "hse-a", "--model", "parameters=1e9,layers=16,batch=64", "--json"],
        ["env", "--json"],
        ["network", "--json", "--seconds", "0"],
        ["network", "prove", "--json"],
        ["topology", "--json"],
        ["topology", "--machine", "hse-e", "--json"],
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_what_verbs_print(command: list[str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, out, err = run(*command)
    value = json.loads(out)
    assert wrong(value) == [], err


def test_where_they_are(run: Run) -> None:
    assert run("--schemas")[:2] == (0, f"{SCHEMAS}\n")
