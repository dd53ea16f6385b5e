"""From another node type to its settings: rows to other nodes, their choices, consistent everywhere."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from made_up_driver import cuda_driver, wheel_ucx
from node_profiles import MIXED, STUDIED, profile_of, text_of
from verb_runs import Run

from waywiser import _core, stages
from waywiser.apply import ucx
from waywiser.apply.facts import Machine
from waywiser.apply.installed import Installed
from waywiser.apply.nccl_network import values_of
from waywiser.apply.nearest import LEVELS
from waywiser.apply.node_switches import (
    NAMES,
    OPERATIONS,
    PURPOSES,
    Case,
    between_nodes,
    limit_for,
    name_of,
    roads_of,
)
from waywiser.apply.node_table import node_markdown, rows_of
from waywiser.apply.propose import settings_for
from waywiser.apply.setting import Settings
from waywiser.errors import InputError
from waywiser.look.ucx import rates
from waywiser.other_nodes import for_core
from waywiser.plan import read_plan
from waywiser.profile_reader import read_profile
from waywiser.report.node_charts import node_charts
from waywiser.simulator.cluster import parse_cluster
from waywiser.simulator.sweep import OPERATIONS as SIMULATED
from waywiser.topology import load_topology

pytestmark = pytest.mark.slow
HOWTO = Path(__file__).parents[2] / "docs" / "howto-cluster.md"
LISTS = Path(__file__).parents[1] / "library_names"
KIB = 1024


# A cluster of three types takes long to simulate: the others where there is time.
FIRST_NOW = pytest.mark.parametrize(
    "machine", [STUDIED[0], *(pytest.param(one, marks=pytest.mark.long) for one in STUDIED[1:])]
)


def machine_of(machine: str, purpose: str = "mixed", mixed: bool = False) -> Machine:
    return Machine(load_topology(machine), profile_of(machine, mixed), purpose)


def gpu_road(machine: str) -> Any:
    return between_nodes(profile_of(machine)).roads[0]


def accepts(target: str, variables: object) -> str:
    return ""


def values(settings: Settings) -> dict[str, str]:
    return {one.name: one.value for one in settings.settings}


def test_rows_for_every_setting_operation_and_rail() -> None:
    profile = profile_of("hse-a")
    plan = read_plan(json.loads(stages.choose(text_of("hse-a"))), "plan")
    rails = ["mlx5_0:1", "mlx5_0:1/mlx5_1:1", "mlx5_1:1", "mlx5_1:1/mlx5_0:1"]
    assert (
        sorted(one.rail for one in roads_of(profile) if one.destination == "hse-a:gpu0" and one.source == "gpu0")
        == rails
    )
    for road in roads_of(profile):
        assert all(len(road.cases((operation,))) == 24 for operation in OPERATIONS), road
    pair = "gpu0", "hse-a:gpu0"
    for operation in (*OPERATIONS, "loaded"):
        for rail in ("", *rails):
            rows = plan.rows_of(pair, 2, operation, rail)
            assert rows and rows[0].from_bytes == 0, (operation, rail)
            assert all(not rail or dict(row.path.parameters)["device"] == rail for row in rows)
    staged = {dict(one.path.parameters).get("variant") for one in profile.series if one.path.mechanism == "ucx_staged"}
    assert staged == {"pageable", "whole", "pipelined"}


@pytest.mark.long
def test_a_cluster_of_three_types_has_rows_from_each_to_each() -> None:
    for machine in STUDIED:
        nodes = between_nodes(profile_of(machine, mixed=True)).by_node
        assert next(iter(nodes)) == machine and set(nodes) == set(STUDIED)
        assert all(roads.single("mixed") for roads in nodes.values())


# ---- findings of the published study ----


def test_latency_falls_seven_times_with_both() -> None:
    for machine, published in (("hse-a", 7.0), ("hse-e", 7.8)):
        road = gpu_road(machine)
        falls = [road.loss(Case("latency", size), ("off", "off")) for size in (8, 16, 32)]
        assert 0.9 * published < max(falls) < 1.1 * published


def test_gdr_raises_bandwidth_of_hse_a_up_to_16_kib_and_slows_large_messages() -> None:
    road = gpu_road("hse-a")
    found = [(first, last, name_of(one)) for first, last, one in road.by_size("bidirectional")]
    assert found == [(8, 16 * KIB, "both"), (32 * KIB, 64 << 20, "GDRCopy")]
    assert road.loss(Case("bidirectional", 64 << 20), ("on", "on")) > 2.5


@pytest.mark.parametrize("machine", STUDIED)
@pytest.mark.parametrize("operation", ["bidirectional", "latency"])
def test_gdrcopy_helps_up_to_8_kib(machine: str, operation: str, run: Run) -> None:
    """The crossover itself: the last byte below UCX's rendezvous threshold."""
    sizes = [8, 512, 4 * KIB, 8 * KIB - 1, 8 * KIB, 8 * KIB + 1, 64 * KIB, 1 << 20]
    words = ("--sizes", ",".join(map(str, sizes)), "--set", "gdr=off", "--vary", "gdrcopy", "--json")
    curves = json.loads(run("simulate", operation, "--machine", machine, *words)[1])["curves"]
    off, on = (
        [point["seconds"] for curve in curves if curve["setting"]["gdrcopy"] == one for point in curve["points"]]
        for one in ("off", "on")
    )
    assert [size for size, a, b in zip(sizes, off, on, strict=True) if a / b > 1.02] == sizes[:4]
    assert [size for size, a, b in zip(sizes, off, on, strict=True) if a == b] == sizes[4:]
    (row,) = [line for line in HOWTO.read_text().splitlines() if line.startswith("| GDRCopy helps up to")]
    assert f"up to {sizes[3]:,} B" in row and "no effect from 8 KiB on" in row


@pytest.mark.parametrize(
    ("machine", "latency", "bandwidth"),
    [("hse-a", "both", "GDRCopy"), ("hse-c", "both", "GDRCopy"), ("hse-e", "both", "both")],
)
def test_the_best_single_setting(machine: str, latency: str, bandwidth: str) -> None:
    roads = between_nodes(profile_of(machine)).deciding
    found = {purpose: roads.single(purpose) for purpose in PURPOSES}
    assert name_of(found["latency"].switches) == latency  # type: ignore[union-attr]
    assert name_of(found["bandwidth"].switches) == bandwidth  # type: ignore[union-attr]


def test_mixed_takes_the_smallest_worst_loss_and_tells_it() -> None:
    roads = between_nodes(profile_of("hse-a"))
    single = roads.single("mixed")
    assert single is not None
    worst = {
        one: max(road.loss(case, one) for road in roads.roads for case in road.cases(tuple(OPERATIONS)))
        for one in NAMES
    }
    assert worst[single.switches] == min(worst.values()) == single.worst_loss
    assert f"{single.worst_loss:.1f} times" in single.text and "64 MiB" in single.text


def test_by_size_is_never_slower_than_one_setting() -> None:
    for machine in STUDIED:
        for road in between_nodes(profile_of(machine)).roads:
            for operation in OPERATIONS:
                for first, last, best in road.by_size(operation):
                    for case in road.cases((operation,)):
                        assert not first <= case.bytes <= last or road.loss(case, best) <= 1 + 1e-6


# ---- one story ----


@FIRST_NOW
def test_simulate_explain_and_report_tell_the_same(machine: str, run: Run) -> None:
    profile, text = profile_of(machine), text_of(machine)
    road = gpu_road(machine)
    plan = stages.choose(text)
    page = str(node_charts(profile))
    for operation in ("latency", "bidirectional"):
        verb = next(verb for verb, name in SIMULATED.items() if name == operation)
        _, out, _ = run("simulate", verb, "--machine", machine, "--vary", "gdr,gdrcopy", "--json")
        answer = json.loads(out)
        best = [(one["from"], one["to"], (one["setting"]["gdr"], one["setting"]["gdrcopy"])) for one in answer["best"]]
        assert best == road.by_size(operation)
        for curve in answer["curves"]:
            switches = curve["setting"]["gdr"], curve["setting"]["gdrcopy"]
            for point in curve["points"]:
                assert road.seconds(Case(operation, point["bytes"]), switches) == pytest.approx(
                    point["seconds"], rel=1e-9
                )
        for size in (8, 4 * KIB, 16 * KIB, 32 * KIB, 1 << 20, 64 << 20):
            places = for_core("gpu0", profile.other_nodes), for_core(f"{machine}:gpu0", profile.other_nodes)
            told = stages.explain(text, plan, *places, 2, operation, size, road.rail)
            direct = [one for one in told["candidates"] if one["path"]["mechanism"] == "ucx"]
            fastest = direct[0]["path"]["parameters"]
            wanted = next(one for first, last, one in best if first <= size <= last)
            assert (fastest["gdr"], fastest["gdrcopy"]) == wanted or direct[0]["measured"]["seconds"] == pytest.approx(
                road.seconds(Case(operation, size), wanted), rel=1e-9
            )
        for first, last, switches in best:
            assert f"best: {name_of(switches)}" in page and first < last


def test_the_page_marks_the_best() -> None:
    page = str(node_charts(profile_of("hse-a")))
    assert page.count("best: both") == 2 and page.count("best: GDRCopy") == 2 and "best: neither" not in page
    assert page.count('class="ring') == 2 * 24
    assert node_charts(read_profile({**json.loads(text_of("hse-a")), "series": []}, "x")) is None


def test_no_two_sizes_below_an_axis_overlap() -> None:
    """Not even where few sizes were timed, in powers of 4 and of 2 (`--quick`)."""
    value = json.loads(text_of("hse-a"))
    kept = {8, 256, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 1 << 20, 64 << 20}
    for one in value["series"]:
        one["points"] = [point for point in one["points"] if point["bytes"] in kept]
    for page in (str(node_charts(read_profile(value, "x"))), str(node_charts(profile_of("hse-a")))):
        for picture in page.split("<svg")[1:]:
            found = re.findall(r'<text x="([0-9.]+)" y="318" class="tick middle">', picture)
            assert len(found) > 3 and float(found[-1]) <= 560 - 24
            assert all(float(b) - float(a) >= 56 for a, b in pairwise(found)), found


# ---- settings ----


def test_what_comes_out_differs_as_the_hardware_does() -> None:
    found = {machine: values(settings_for(machine_of(machine), unchecked=True)) for machine in STUDIED}
    assert found["hse-a"]["UCX_DISTANCE_BW"].startswith("phb:3500MBs") and "UCX_DISTANCE_BW" not in found["hse-e"]
    assert not any(name.startswith(("NCCL_NET_", "UCX_MAX_RNDV_RAILS")) for each in found.values() for name in each)
    for machine in STUDIED:
        settings = settings_for(machine_of(machine), unchecked=True)
        assert settings.label == "Simulated: not a measurement" and not any(one.measured for one in settings.settings)


@pytest.mark.parametrize("far", LEVELS)
@pytest.mark.parametrize("direct", ["near", "on", "write", "off"])
def test_distances_are_written_in_words_that_nccl_knows(direct: str, far: str) -> None:
    """It takes another word for none, and goes as far as by default."""
    assert values_of(direct, far).get("NCCL_NET_GDR_LEVEL", "SYS") in ("LOC", "PIX", "PXB", "PHB", "SYS")
    assert values_of("on", "NODE") == {"NCCL_NET_GDR_LEVEL": "PHB"}


def test_a_switch_for_all_sizes_follows_the_purpose() -> None:
    nccl = {one: values(settings_for(machine_of("hse-a", one), ("nccl",), unchecked=True)) for one in PURPOSES}
    assert nccl == {"latency": {"NCCL_NET_GDR_LEVEL": "PHB"}, "bandwidth": {}, "mixed": {}}
    mpich = {one: values(settings_for(machine_of("hse-a", one), ("mpich",), unchecked=True)) for one in PURPOSES}
    assert mpich["latency"]["MPIR_CVAR_CH4_OFI_ENABLE_HMEM"] == "1"
    assert "MPIR_CVAR_CH4_OFI_ENABLE_HMEM" not in mpich["bandwidth"]


OLDER = {
    "UCX_RNDV_MEMTYPE_DIRECT_SIZE": "inf",
    "UCX_PROTO_ENABLE": "n",
    "UCX_IB_GPU_DIRECT_RDMA": "try",
    "UCX_TLS": "all",
}


def test_an_older_ucx_gets_a_limit_in_bytes_and_without_one_the_switch() -> None:
    def found(known: dict[str, str], purpose: str) -> dict[str, str]:
        library = {"ucx": Installed("older", known)}
        return values(settings_for(machine_of("hse-a", purpose), ("ucx",), library, accepts))

    limits = {one: int(found(OLDER, one)["UCX_RNDV_MEMTYPE_DIRECT_SIZE"]) for one in PURPOSES}
    assert limits["bandwidth"] == 32 * KIB and limits["latency"] == 1 << 20
    assert limits["bandwidth"] < limits["mixed"] < limits["latency"]
    roads = between_nodes(profile_of("hse-a"))
    single = roads.single("mixed")
    assert single is not None and limit_for(roads, "mixed").worst_loss < single.worst_loss
    plain = {name: OLDER[name] for name in ("UCX_IB_GPU_DIRECT_RDMA", "UCX_TLS")}
    assert found(plain, "bandwidth")["UCX_IB_GPU_DIRECT_RDMA"] == "n"
    assert "UCX_IB_GPU_DIRECT_RDMA" not in found(plain, "latency")


def test_open_mpi_with_the_openib_transport_gets_a_limit() -> None:
    known = {
        "OMPI_MCA_btl_openib_cuda_rdma_limit": "18446744073709551615",
        "OMPI_MCA_btl_openib_want_cuda_gdr": "false",
    }
    library = {"openmpi": Installed("4.0", known)}
    found = values(settings_for(machine_of("hse-a", "bandwidth"), ("openmpi",), library, accepts))
    assert found == {"OMPI_MCA_btl_openib_want_cuda_gdr": "true", "OMPI_MCA_btl_openib_cuda_rdma_limit": f"{32 * KIB}"}


@FIRST_NOW
def test_in_a_mixed_cluster_a_node_is_set_by_its_own_hardware(machine: str) -> None:
    alone = values(settings_for(machine_of(machine), unchecked=True))
    assert values(settings_for(machine_of(machine, mixed=True), unchecked=True)) == alone


@pytest.fixture(scope="module")
def ucx_of_the_wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, str]], str]:
    """Its ucx_info -c under given variables, with the module of CUDA."""
    program, libraries = wheel_ucx()
    driver = cuda_driver(tmp_path_factory.mktemp("cuda"), libraries)

    def told(variables: dict[str, str]) -> str:
        environment = {"LD_LIBRARY_PATH": f"{libraries}:{driver}", **variables}
        done = subprocess.run([program, "-c"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=60)  # fmt: skip
        assert done.returncode == 0, done.stdout[-300:]
        return done.stdout

    return told


def recorded_names(name: str) -> set[str]:
    """A list of variables that scripts/library_names has made from the library itself."""
    first, *names = (LISTS / f"{name}.txt").read_text().splitlines()
    assert re.search(r" \d+\.\d+\.\d+, .+; 20\d\d-\d\d-\d\d$", first), first
    return set(names)


def emitted(machine: str) -> dict[str, str]:
    """Every variable for a machine, for any purpose."""
    profiles = (profile_of(machine), profile_of(machine, mixed=True) if machine in STUDIED else None)
    found: dict[str, str] = {}
    for purpose in PURPOSES:
        for profile in filter(None, profiles):
            found |= values(settings_for(Machine(load_topology(machine), profile, purpose), unchecked=True))
    return found


@pytest.mark.parametrize("machine", [*STUDIED, pytest.param("dgx-a100", marks=pytest.mark.long)])
def test_every_variable_is_known_to_its_library(machine: str) -> None:
    known = {"UCX_GDR_COPY_BW"}  # of a module that no package has; named in UCX's gdr_copy_iface.c
    for name in ("ucx-debian", "ucx-wheel", "mpich", "nccl"):
        known |= recorded_names(name)
    found = {name for name in emitted(machine) if not name.startswith("OMPI_MCA_")}
    libraries = {name.partition("_")[0] for name in found}
    assert libraries >= {"UCX", "MPIR"} and ("NCCL" in libraries) == (machine != "dgx-a100")
    assert found <= known, found - known


@pytest.mark.parametrize("machine", [*STUDIED, "dgx-a100"])
def test_ucx_accepts_every_value(machine: str, ucx_of_the_wheel: Callable[[dict[str, str]], str]) -> None:
    """A list that lacks a word, or has another one, is an error for UCX."""
    wanted = {name: value for name, value in emitted(machine).items() if name.startswith("UCX_")}
    told = ucx_of_the_wheel(wanted)
    assert not re.search(r"UCX +(ERROR|WARN) ", told), re.findall(r"UCX +(?:ERROR|WARN) .*", told)
    shown = dict(re.findall(r"^(UCX_\w+)=(.*)$", told, re.MULTILINE))
    assert wanted.keys() - shown.keys() <= {"UCX_GDR_COPY_BW"}
    copy, before = (rates(one) for one in (shown["UCX_CUDA_COPY_BW"], ucx.USUAL["UCX_CUDA_COPY_BW"]))
    assert copy == {**rates(wanted["UCX_CUDA_COPY_BW"])} and copy.keys() == before.keys()
    words = [part.partition(":")[0] for part in wanted["UCX_GDR_COPY_BW"].split(",")]
    assert words == ["get_dedicated", "get_shared", "put_dedicated", "put_shared"]  # all of gdr_copy_iface.c


def test_the_defaults_that_are_assumed_elsewhere_are_those_of_the_wheel(
    ucx_of_the_wheel: Callable[[dict[str, str]], str],
) -> None:
    shown = dict(re.findall(r"^(UCX_\w+)=(.*)$", ucx_of_the_wheel({}), re.MULTILINE))
    if f"libucx-cu13 {importlib.metadata.version('libucx-cu13')}," in (LISTS / "ucx-wheel.txt").read_text():
        assert recorded_names("ucx-wheel") == shown.keys()
    for name, value in ucx.USUAL.items():
        if name in shown and name != "UCX_DISTANCE_BW":  # which UCX's own ucx.conf sets by the model of the CPU
            assert rates(shown[name]) == rates(value) and (rates(value) or shown[name] == value), name


# ---- the command line ----


def results(folder: Path, machine: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "profile.json").write_text(text_of(machine))
    return folder


def test_env_of_a_machine_that_is_not_here_is_labelled(run: Run, tmp_path: Path) -> None:
    folder = results(tmp_path, "hse-a")
    status, out, _ = run("env", "--machine", "hse-a", "--results", str(folder), "--for", "nccl,latency")
    assert status == 0 and "# Simulated: not a measurement" in out
    assert "export NCCL_NET_GDR_LEVEL=PHB" in out and "UCX_" not in out
    assert [file.name for file in tmp_path.iterdir()] == ["profile.json"]


def test_apply_shows_one_setting_and_the_one_by_size(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = run("apply", "--machine", "hse-a", "--results", str(results(tmp_path, "hse-a")))
    assert status == 0 and "SIMULATED: NOT A MEASUREMENT" in out
    lines = {row.purpose: row for row in rows_of(profile_of("hse-a"))}
    for row in lines.values():
        line = next(line for line in out.splitlines() if f" {row.purpose} " in line and row.by_size in line)
        assert name_of(row.single.switches) in line
    assert lines["bandwidth"].by_size == "8 B to 16 KiB both, 32 KiB to 64 MiB GDRCopy"


def test_explain_over_one_rail(run: Run, tmp_path: Path) -> None:
    folder = str(results(tmp_path, "hse-c"))
    for destination in ("hse-c:gpu0", "other:gpu0"):
        near, far = (
            json.loads(run("explain", "gpu0", destination, "1M", "--rail", rail, "--results", folder, "--json")[1])
            for rail in ("mlx5_0:1", "mlx5_1:1")
        )
        assert near["candidates"][0]["predicted"] < far["candidates"][0]["predicted"]
    status, out, err = run("explain", "gpu0", "hse-x:gpu0", "1M", "--results", folder)
    assert (status, out) == (2, "") and "there are paths to hse-c:gpu0" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["apply", "--for", "latency,bandwidth"], "write one of"),
        (["apply", "--for", "fast"], "write some of"),
        (["apply", "--markdown"], "other machines"),
        (["env", "--machine", "hse-a", "--proved"], "leave out"),
        (["tune", "--nodes", "2"], "--machine"),
        (["tune", "--machine", "hse-a", "--nodes", "0"], "1 to"),
        (["tune", "--machine", "hse-a", "--cluster", "x.yaml"], "leave out"),
        (["tune", "--machine", "hse-a", "--nodes", "2", "--backend", "virtual_gpu"], "simulated machine"),
    ],
)
def test_bad_arguments(run: Run, tmp_path: Path, arguments: list[str], says: str) -> None:
    status, out, err = run(*arguments, "--results", str(tmp_path / "none"))
    assert (status, out) == (2, "") and says in err and err.count("\n") == 1, err


def test_a_collective_needs_nodes_of_one_type(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text(MIXED)
    status, _, err = run("simulate", "all_reduce", "--cluster", str(file))
    assert status == 2 and "nodes of one type" in err and "line 1" in err
    status, out, _ = run("simulate", "latency", "--cluster", str(file), "--sizes", "64M", "--json")
    first = json.loads(out)["curves"][0]["points"][0]["seconds"]
    road = next(one for one in between_nodes(profile_of("hse-a", mixed=True)).roads if one.node == "hse-e")
    assert status == 0 and road.seconds(Case("latency", 64 << 20), ("on", "on")) == pytest.approx(first, rel=1e-9)


@pytest.mark.parametrize(
    "text", ["nodes: [2 x hse-a, 3]", "nodes: []", "nodes: [2 x hse-a, 2 x nowhere]", "nodes: {a: 1}"]
)
def test_a_wrong_list_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="line 1"):
        parse_cluster(text, "c.yaml")


# ---- documents ----


def test_the_table_of_the_how_to() -> None:
    text = (Path(__file__).parents[2] / "docs" / "howto-cluster.md").read_text()
    machines = [profile_of(machine) for machine in (*STUDIED, "dgx-a100")]
    mixed = [profile_of(machine, mixed=True) for machine in STUDIED]
    for profiles in (machines, mixed):
        for line in node_markdown(profiles).splitlines():
            assert line in text, line
    for machine in (*STUDIED, "dgx-a100"):
        for name, value in values(settings_for(machine_of(machine), unchecked=True)).items():
            if name != "UCX_CUDA_IPC_BW":  # between GPUs of one node, which these profiles leave out
                row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
                assert f"`{value}`" in row, (machine, name)


# ---- older files ----


def test_files_of_version_1_are_read(tmp_path: Path) -> None:
    value = json.loads(text_of("hse-a"))
    fingerprint = value["fingerprint"]
    older = json.loads(json.dumps(value).replace(f'"{fingerprint}:', '"other:'))
    older |= {"version": 1, "state": {"other": {"fingerprint": fingerprint, "machine": "hse-a"}}}
    del older["other_nodes"]
    profile = read_profile(older, "older")
    assert {one.destination for one in roads_of(profile)} == {"hse-a:gpu0", "hse-a:host0"}
    plan = json.loads(stages.choose(json.dumps(older)))
    assert plan["version"] == 3 and plan["other_nodes"] == [{"fingerprint": fingerprint, "machine": "hse-a"}]
    assert _core.Chooser(json.dumps(plan)).choose("gpu0", f"{fingerprint}:gpu0", 2, "latency", 8)
