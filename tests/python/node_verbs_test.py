"""Settings of a node that is not here, by the verbs, and the lists of nodes that these take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from node_profiles import MIXED, profile_of, text_of
from verb_runs import Run

from waywiser.apply.node_switches import Case, between_nodes, name_of
from waywiser.apply.node_table import rows_of
from waywiser.errors import InputError
from waywiser.simulator.cluster_file import parse_cluster

pytestmark = pytest.mark.slow


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


def test_a_collective_needs_as_many_gpus_of_each_node(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text(MIXED)
    status, _, err = run("simulate", "all_reduce", "--cluster", str(file))
    assert status == 2 and "as many GPUs of each node" in err and "line 1" in err
    words = ("simulate", "all_reduce", "--cluster", str(file), "--order", "0,1", "--sizes", "1M", "--json")
    status, out, _ = run(*words, "--algorithms", "nccl_ring")
    assert status == 0 and json.loads(out)["cases"][0]["seconds"] > 0
    status, out, _ = run("simulate", "latency", "--cluster", str(file), "--sizes", "64M", "--json")
    first = json.loads(out)["curves"][0]["points"][0]["seconds"]
    path = next(one for one in between_nodes(profile_of("hse-a", mixed=True)).paths if one.node == "hse-e")
    assert status == 0 and path.seconds(Case("latency", 64 << 20), ("on", "on")) == pytest.approx(first, rel=1e-9)


@pytest.mark.parametrize(
    "text", ["nodes: [2 x hse-a, 3]", "nodes: []", "nodes: [2 x hse-a, 2 x nowhere]", "nodes: {a: 1}"]
)
def test_a_wrong_list_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="line 1"):
        parse_cluster(text, "c.yaml")
