"""From another node type to its settings: rows to other nodes, their choices, consistent everywhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from verb_runs import Run

from waywiser import _core, libucp, stages
from waywiser.apply.facts import Machine
from waywiser.apply.installed import Installed
from waywiser.apply.node_switches import (
    NAMES,
    OPERATIONS,
    PURPOSES,
    SIZES,
    Case,
    between_nodes,
    limit_for,
    name_of,
    roads_of,
)
from waywiser.apply.node_table import node_markdown, rows_of
from waywiser.apply.propose import settings_for
from waywiser.apply.setting import Settings
from waywiser.campaign import Request
from waywiser.doctor.nccl_names import NCCL_NAMES
from waywiser.errors import InputError
from waywiser.other_nodes import for_core
from waywiser.plan import read_plan
from waywiser.profile import Profile, read_profile
from waywiser.report.node_charts import node_charts
from waywiser.simulator.cluster import Cluster, parse_cluster
from waywiser.simulator.sweep import OPERATIONS as SIMULATED
from waywiser.topology import load_topology

KIB = 1024
STUDIED = ("hse-a", "hse-c", "hse-e")
FAR = {"hse-e": ["gpu2"]}  # not below the switch of a NIC
MIXED = "nodes: [2 x hse-a, 2 x hse-c, 2 x hse-e]\n"


@cache
def text_of(machine: str, mixed: bool = False) -> str:
    """The profile of a GPU at each distance from its NIC and the first host memory, with roads to other nodes: JSON."""
    cluster = parse_cluster(MIXED, "mixed.yaml").beginning_with(machine) if mixed else Cluster(machine, {"nodes": 2})
    request = Request(machine=machine, cluster=cluster)
    topology = request.topology()
    options = {**request.options(), "places": ["gpu0", *FAR.get(machine, ()), "host0"], "processes": [1]}
    options |= {"operations": list(OPERATIONS), "min_bytes": SIZES[0], "max_bytes": SIZES[-1]}
    return stages.measure(topology, options, None, stages.Watch(lambda *_: None), request.simulation(topology))


@cache
def profile_of(machine: str, mixed: bool = False) -> Profile:
    return read_profile(json.loads(text_of(machine, mixed)), machine)


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


def test_gdrcopy_helps_up_to_8_kib() -> None:
    for machine in STUDIED:
        road = gpu_road(machine)
        for size in (8, 512, 4 * KIB, 8 * KIB, 64 * KIB, 1 << 20):
            off, on = (road.seconds(Case("bidirectional", size), ("off", one)) for one in ("off", "on"))
            assert (off / on > 1.02) == (size < 8 * KIB), (machine, size)


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


@pytest.mark.parametrize("machine", STUDIED)
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


# ---- settings ----


def test_what_comes_out_differs_as_the_hardware_does() -> None:
    found = {machine: values(settings_for(machine_of(machine), unchecked=True)) for machine in STUDIED}
    assert found["hse-a"]["UCX_DISTANCE_BW"].startswith("phb:36") and "UCX_DISTANCE_BW" not in found["hse-e"]
    assert found["hse-a"]["NCCL_NET_GDR_LEVEL"] == "PHB"
    for machine in STUDIED:
        settings = settings_for(machine_of(machine), unchecked=True)
        assert settings.label == "Simulated: not a measurement" and not any(one.measured for one in settings.settings)


def test_a_switch_for_all_sizes_follows_the_purpose() -> None:
    nccl = {one: values(settings_for(machine_of("hse-a", one), ("nccl",), unchecked=True)) for one in PURPOSES}
    assert nccl["bandwidth"]["NCCL_NET_GDR_READ"] == "0" and "NCCL_NET_GDR_READ" not in nccl["latency"]
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


def test_in_a_mixed_cluster_a_node_is_set_by_its_own_hardware() -> None:
    for machine in STUDIED:
        alone = values(settings_for(machine_of(machine), unchecked=True))
        assert values(settings_for(machine_of(machine, mixed=True), unchecked=True)) == alone


def ucx_names(program: str, environment: dict[str, str]) -> set[str]:
    told = subprocess.run([program, "-c"], env=os.environ | environment, capture_output=True, text=True, timeout=60)
    return set(re.findall(r"^(UCX_\w+)=", told.stdout, re.MULTILINE))


def test_every_variable_is_known_to_its_library() -> None:
    """To UCX of the wheel (CUDA) or of the system (InfiniBand), where it is there; NCCL's to the list of names."""
    path = Path(libucp.path or "/nowhere/lib/libucp.so.0")
    program = path.parent.parent / "bin" / "ucx_info"
    known = ucx_names(str(program), {"LD_LIBRARY_PATH": str(path.parent)}) if program.exists() else set()
    known |= ucx_names("ucx_info", {}) if shutil.which("ucx_info") else set()
    if not known:
        pytest.skip("needs ucx_info")
    of_modules = ("UCX_IB_", "UCX_CUDA_", "UCX_GDR_COPY_")  # shown where the module can be loaded: with its hardware
    for machine in (*STUDIED, "dgx-a100"):
        for purpose in PURPOSES:
            for name in values(settings_for(machine_of(machine, purpose), unchecked=True)):
                if name.startswith("UCX_") and not name.startswith(of_modules):
                    assert name in known, name
                if name.startswith("NCCL_"):
                    assert name.removeprefix("NCCL_") in NCCL_NAMES, name
    assert {"UCX_DISTANCE_BW", "UCX_RNDV_MEMTYPE_DIRECT_SIZE", "UCX_TLS"} & known


# ---- the command line ----


def results(folder: Path, machine: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "profile.json").write_text(text_of(machine))
    return folder


def test_env_of_a_machine_that_is_not_here_is_labelled(run: Run, tmp_path: Path) -> None:
    folder = results(tmp_path, "hse-a")
    status, out, _ = run("env", "--machine", "hse-a", "--output", str(folder), "--for", "nccl,bandwidth")
    assert status == 0 and "# Simulated: not a measurement" in out
    assert "export NCCL_NET_GDR_LEVEL=PHB" in out and "export NCCL_NET_GDR_READ=0" in out and "UCX_" not in out
    assert [file.name for file in tmp_path.iterdir()] == ["profile.json"]


def test_apply_shows_one_setting_and_the_one_by_size(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = run("apply", "--machine", "hse-a", "--output", str(results(tmp_path, "hse-a")))
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
            json.loads(run("explain", "gpu0", destination, "1M", "--rail", rail, "--output", folder, "--json")[1])
            for rail in ("mlx5_0:1", "mlx5_1:1")
        )
        assert near["candidates"][0]["predicted"] < far["candidates"][0]["predicted"]
    status, out, err = run("explain", "gpu0", "hse-x:gpu0", "1M", "--output", folder)
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
    status, out, err = run(*arguments, "--output", str(tmp_path / "none"))
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
            if name.startswith(("UCX_DISTANCE", "UCX_IB", "UCX_RNDV", "NCCL_NET", "MPIR_CVAR_CH4_OFI_ENABLE")):
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
    assert plan["version"] == 2 and plan["other_nodes"] == [{"fingerprint": fingerprint, "machine": "hse-a"}]
    rows = [{key: one for key, one in row.items() if key != "rail"} for row in plan["rows"] if not row["rail"]]
    old_plan = {**plan, "version": 1, "other": fingerprint, "rows": rows}
    assert _core.Chooser(json.dumps(old_plan)).choose("gpu0", f"{fingerprint}:gpu0", 2, "latency", 8)
