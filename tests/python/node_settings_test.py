"""From another node type to its settings: rows to other nodes, their choices, consistent everywhere."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import made_up
import pytest
from node_profiles import STUDIED, accepts, machine_of, profile_of, text_of, values
from verb_runs import Run

from waywiser import _core, stages
from waywiser.apply.installed import Installed
from waywiser.apply.nccl_network import values_of
from waywiser.apply.nearest import LEVELS
from waywiser.apply.node_switches import NAMES, OPERATIONS, PURPOSES, Case, between_nodes, limit_for, name_of, paths_of
from waywiser.apply.propose import settings_for
from waywiser.other_nodes import for_core
from waywiser.plan import read_plan
from waywiser.report.node_charts import node_charts
from waywiser.simulator.sweep import OPERATIONS as SIMULATED

pytestmark = pytest.mark.slow
HOWTO = Path(__file__).parents[2] / "docs" / "howto-cluster.md"
KIB = 1024


# A cluster of three types takes long to simulate: the others where there is time.
FIRST_NOW = pytest.mark.parametrize(
    "machine", [STUDIED[0], *(pytest.param(one, marks=pytest.mark.long) for one in STUDIED[1:])]
)


def gpu_path(machine: str) -> Any:
    return between_nodes(profile_of(machine)).paths[0]


def test_rows_for_every_setting_operation_and_rail() -> None:
    profile = profile_of("hse-a")
    plan = read_plan(stages.choose(text_of("hse-a")).encode(), "plan")
    rails = ["mlx5_0:1", "mlx5_0:1/mlx5_1:1", "mlx5_1:1", "mlx5_1:1/mlx5_0:1"]
    assert (
        sorted(one.rail for one in paths_of(profile) if one.destination == "hse-a:gpu0" and one.source == "gpu0")
        == rails
    )
    for path in paths_of(profile):
        assert all(len(path.cases((operation,))) == 24 for operation in OPERATIONS), path
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
        assert all(paths.single("mixed") for paths in nodes.values())


# ---- findings of the published study ----


def test_latency_falls_seven_times_with_both() -> None:
    for machine, published in (("hse-a", 7.0), ("hse-e", 7.8)):
        path = gpu_path(machine)
        falls = [path.loss(Case("latency", size), ("off", "off")) for size in (8, 16, 32)]
        assert 0.9 * published < max(falls) < 1.1 * published


def test_gdr_raises_bandwidth_of_hse_a_up_to_16_kib_and_slows_large_messages() -> None:
    path = gpu_path("hse-a")
    found = [(first, last, name_of(one)) for first, last, one in path.by_size("bidirectional")]
    assert found == [(8, 16 * KIB, "both"), (32 * KIB, 64 << 20, "GDRCopy")]
    assert path.loss(Case("bidirectional", 64 << 20), ("on", "on")) > 2.5


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
    paths = between_nodes(profile_of(machine)).deciding
    found = {purpose: paths.single(purpose) for purpose in PURPOSES}
    assert name_of(found["latency"].switches) == latency  # type: ignore[union-attr]
    assert name_of(found["bandwidth"].switches) == bandwidth  # type: ignore[union-attr]


def test_mixed_takes_the_smallest_worst_loss_and_tells_it() -> None:
    paths = between_nodes(profile_of("hse-a"))
    single = paths.single("mixed")
    assert single is not None
    worst = {
        one: max(path.loss(case, one) for path in paths.paths for case in path.cases(tuple(OPERATIONS)))
        for one in NAMES
    }
    assert worst[single.switches] == min(worst.values()) == single.worst_loss
    assert f"{single.worst_loss:.1f} times" in single.text and "64 MiB" in single.text


def test_by_size_is_never_slower_than_one_setting() -> None:
    for machine in STUDIED:
        for path in between_nodes(profile_of(machine)).paths:
            for operation in OPERATIONS:
                for first, last, best in path.by_size(operation):
                    for case in path.cases((operation,)):
                        assert not first <= case.bytes <= last or path.loss(case, best) <= 1 + 1e-6


# ---- one story ----


@FIRST_NOW
def test_simulate_explain_and_report_tell_the_same(machine: str, run: Run) -> None:
    profile, text = profile_of(machine), text_of(machine)
    path = gpu_path(machine)
    plan = stages.choose(text)
    page = str(node_charts(profile))
    for operation in ("latency", "bidirectional"):
        verb = next(verb for verb, name in SIMULATED.items() if name == operation)
        _, out, _ = run("simulate", verb, "--machine", machine, "--vary", "gdr,gdrcopy", "--json")
        answer = json.loads(out)
        best = [(one["from"], one["to"], (one["setting"]["gdr"], one["setting"]["gdrcopy"])) for one in answer["best"]]
        assert best == path.by_size(operation)
        for curve in answer["curves"]:
            switches = curve["setting"]["gdr"], curve["setting"]["gdrcopy"]
            for point in curve["points"]:
                assert path.seconds(Case(operation, point["bytes"]), switches) == pytest.approx(
                    point["seconds"], rel=1e-9
                )
        for size in (8, 4 * KIB, 16 * KIB, 32 * KIB, 1 << 20, 64 << 20):
            places = for_core("gpu0", profile.other_nodes), for_core(f"{machine}:gpu0", profile.other_nodes)
            told = stages.explain(text, plan, *places, 2, operation, size, path.rail)
            direct = [one for one in told["candidates"] if one["path"]["mechanism"] == "ucx"]
            fastest = direct[0]["path"]["parameters"]
            wanted = next(one for first, last, one in best if first <= size <= last)
            assert (fastest["gdr"], fastest["gdrcopy"]) == wanted or direct[0]["measured"]["seconds"] == pytest.approx(
                path.seconds(Case(operation, size), wanted), rel=1e-9
            )
        for first, last, switches in best:
            assert f"best: {name_of(switches)}" in page and first < last


def test_the_page_marks_the_best() -> None:
    page = str(node_charts(profile_of("hse-a")))
    assert page.count("best: both") == 2 and page.count("best: GDRCopy") == 2 and "best: neither" not in page
    assert page.count('class="ring') == 2 * 24
    assert node_charts(made_up.read({**json.loads(text_of("hse-a")), "series": []})) is None


def test_no_two_sizes_below_an_axis_overlap() -> None:
    """Not even where few sizes were timed, in powers of 4 and of 2 (`--quick`)."""
    value = json.loads(text_of("hse-a"))
    kept = {8, 256, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 1 << 20, 64 << 20}
    for one in value["series"]:
        one["points"] = [point for point in one["points"] if point["bytes"] in kept]
    for page in (str(node_charts(made_up.read(value))), str(node_charts(profile_of("hse-a")))):
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
    paths = between_nodes(profile_of("hse-a"))
    single = paths.single("mixed")
    assert single is not None and limit_for(paths, "mixed").worst_loss < single.worst_loss
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


# ---- older files ----


def test_files_of_version_1_are_read(tmp_path: Path) -> None:
    value = json.loads(text_of("hse-a"))
    fingerprint = value["fingerprint"]
    older = json.loads(json.dumps(value).replace(f'"{fingerprint}:', '"other:'))
    older |= {"version": 1, "state": {"other": {"fingerprint": fingerprint, "machine": "hse-a"}}}
    del older["other_nodes"]
    profile = made_up.read(older)
    assert {one.destination for one in paths_of(profile)} == {"hse-a:gpu0", "hse-a:host0"}
    plan = json.loads(stages.choose(json.dumps(older)))
    assert plan["version"] == 3 and plan["other_nodes"] == [{"fingerprint": fingerprint, "machine": "hse-a"}]
    assert _core.Chooser(json.dumps(plan)).choose("gpu0", f"{fingerprint}:gpu0", 2, "latency", 8)
