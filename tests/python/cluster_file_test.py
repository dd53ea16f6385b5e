"""Cluster files: their meaning, and one line for each kind of error."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.cli import run
from waywiser.errors import InputError
from waywiser.simulator.cluster_file import parse_cluster
from waywiser.simulator.collectives import COMPARED, Case, fastest_of
from waywiser.simulator.costs import settings_in

pytestmark = pytest.mark.slow
GOOD = """\
nodes: 1024 x hse-e
network: fat-tree(2:1)
radix: 40
nic: ndr400
in_network_reduction: yes
failed_links: [3, 17]
slow_links: {5: 0.25}
second_job: 64M
costs: {ucx.copy: 8e-6}
"""


def test_every_key() -> None:
    cluster = parse_cluster(GOOD, "c.yaml")
    assert (cluster.machine, cluster.nodes, cluster.job_bytes) == ("hse-e", 1024, 64 << 20)
    assert cluster.costs == {"ucx.copy": 8e-6}
    assert cluster.network["kind"] == "fat-tree" and cluster.network["taper"] == 2
    assert cluster.network["sick"] == [{"index": 3, "share": 0}, {"index": 17, "share": 0}, {"index": 5, "share": 0.25}]


def test_failed_links_with_both_routings_and_a_job_without_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """16 nodes on a fat tree; two of the four cables above the first leaf have failed."""
    times = {}
    for words in ("", "routing: adaptive\n", "second_job: endless\n"):
        file = tmp_path / "cluster.yaml"
        file.write_text(f"nodes: 16 x hse-e\nnetwork: fat-tree(1:1)\nradix: 8\nfailed_links: [0, 1]\n{words}")
        told = (
            "simulate",
            "all_to_all",
            "--cluster",
            str(file),
            "--algorithms",
            "pairwise",
            "--sizes",
            "64M",
            "--json",
        )
        assert run([*told]) == 0
        times[words] = json.loads(capsys.readouterr().out)["cases"][0]["seconds"]
    well, adaptive, beside = times.values()
    assert adaptive < well < beside


@pytest.mark.parametrize(("text", "taper"), [("1.5:1", 1.5), ("3:2", 1.5), ("1:1", 1.0), ("2.5:1.25", 2.0)])
def test_tapers(text: str, taper: float) -> None:
    assert parse_cluster(f"nodes: 4 x hse-e\nnetwork: fat-tree({text})", "c.yaml").network["taper"] == taper


@pytest.mark.parametrize(("port", "rate"), [("10G", 1.25e9), ("200G", 25e9), ("hdr200", 25e9), ("2.5G", 0.3125e9)])
def test_ports_by_name_or_rate(port: str, rate: float) -> None:
    assert parse_cluster(f"nodes: 4 x hse-e\nnic: {port}", "c.yaml").network["port_rate"] == pytest.approx(0.97 * rate)
    assert settings_in([f"nic={port}"])[1] == pytest.approx(0.97 * rate)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nodes: many x hse-e", "line 1: 'nodes' must be COUNT x MACHINE"),
        ("nodes: 4 x hse-z", "line 1: 'hse-z' is not a machine; a file is written with a slash"),
        ("nodes: 999999 x hse-e", "line 1: a cluster has 1 to 100000 nodes"),
        ("nodes: 4 x hse-e\n\nnetwork: fat-bush", "line 3: 'network' must be one of switch, fat-tree(2:1)"),
        ("nodes: 4 x hse-e\nnetwork: torus(4, x)", "line 2: 'network' must be one of"),
        ("nodes: 4 x hse-e\nnetwork: fat-tree(1:2)", "line 2: 'network' must be one of"),
        ("nodes: 4 x hse-e\nradix: 3", "line 2: 'radix' must be a whole number from 4 to 1024, not '3'"),
        ("nodes: 4 x hse-e\nnic: edr", "line 2: 'nic' must be edr100, hdr200, ndr400, xdr800, eth40 or a rate such as"),
        ("nodes: 4 x hse-e\nnic: 0G", "line 2: 'nic' must be edr100"),
        ("nodes: 4 x hse-e\nnetwork: fat-tree(1.5:2)", "line 2: 'network' must be one of"),
        ("nodes: 4 x hse-e\ncolour: red", "line 2: 'colour' is not a key; keys are nodes"),
        ("nodes: 4 x hse-e\nnodes: 5 x hse-e", "line 2: 'nodes' is given twice"),
        ("nodes: 4 x hse-e\nin_network_reduction: perhaps", "line 2: 'in_network_reduction' must be yes or no"),
        ("nodes: 4 x hse-e\nfailed_links: 3", "line 2: 'failed_links' must be a list"),
        ("nodes: 4 x hse-e\nslow_links: {3: 2}", "line 2: 'slow_links' must be a number from 0.001 to 1"),
        ("nodes: 4 x hse-e\nsecond_job: much", "line 2: 'second_job'"),
        ("nodes: 4 x hse-e\nrouting: random", "line 2: 'routing' must be static or adaptive, not 'random'"),
        ("nodes: [", "line 1: not YAML"),
        ("network: switch", "line 1: 'nodes' is missing"),
        ("- 1", "line 1: a cluster file is a list of KEY: VALUE"),
        ("", "line 1: a cluster file is a list of KEY: VALUE"),
        ("nodes: 4 x hse-e\nfailed_links: [7]", "line 2: there is no link 7: the network has 0 cables"),
        ("nodes: 64 x hse-e\nnetwork: fat-tree(1:1)\nslow_links: {9999: 0.5}", "line 3: there is no link 9999"),
        ("nodes: 4 x hse-e\nnvlink_domain: 12", "line 2: an NVLink domain must hold whole nodes"),
        ("network: torus(2, 3)\nnodes: 4 x hse-e", "line 1: the sides of the torus must multiply to the 4 nodes"),
        ("nodes: 4 x hse-e\ncosts:\n  ucx.coppy: 1", "line 3: costs: 'ucx.coppy' is not a cost"),
    ],
)
def test_one_line_with_the_line_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    assert run(["simulate", "all_reduce", "--cluster", str(file)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    said = [line for line in lines if not line.startswith("simulating:")]
    assert len(said) == 1
    assert words in said[0] and "cluster.yaml" in said[0]


KEYS = ["nodes", "network", "radix", "nic", "nvlink_domain", "failed_links", "slow_links", "second_job", "costs", "x"]
VALUES = st.one_of(
    st.text(max_size=30),
    st.integers(),
    st.floats(),
    st.lists(st.integers(), max_size=4),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
    st.sampled_from(["4 x hse-e", "fat-tree(3:1)", "torus(2, 2)", "edr100", "yes", "64M", None]),
)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5))
def test_any_values_are_read_or_refused_in_one_line(values: dict[str, object]) -> None:
    _read_or_refuse(json.dumps(values))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.one_of(st.text(max_size=200), st.binary(max_size=80).map(lambda data: data.decode("latin-1"))))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    _read_or_refuse(text)
    cut = len(text) % len(GOOD)
    _read_or_refuse(GOOD[:cut] + text + GOOD[cut:])


# Checks that only the core can make: shapes with room for all nodes, existing cables, domains.
SHAPES = st.sampled_from(
    ["switch", "fat-tree(3:1)", "rail-optimised(1:1)", "torus(2, 2)", "torus(4)", "dragonfly(2, 2, 1)", "torus(9)"]
)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.integers(1, 5),
    SHAPES,
    st.integers(2, 20),
    st.lists(st.integers(0, 12), max_size=3),
    st.floats(0.001, 1),
    st.booleans(),
)
def test_any_cluster_is_simulated_or_refused_with_its_line(
    tmp_path_factory: pytest.TempPathFactory,
    nodes: int,
    shape: str,
    domain: int,
    failed: list[int],
    share: float,
    reduction: bool,
) -> None:
    file = tmp_path_factory.mktemp("cluster") / "c.yaml"
    file.write_text(
        f"nodes: {nodes} x remote-a10\nnetwork: {shape}\nnvlink_domain: {domain}\nfailed_links: {failed}\n"
        f"slow_links: {{1: {share}}}\nin_network_reduction: {reduction}\nradix: 4\n"
    )
    with pytest.MonkeyPatch.context() as patch, io.StringIO() as told, io.StringIO() as shown:
        patch.setattr(sys, "stderr", told)
        patch.setattr(sys, "stdout", shown)
        code = run(["simulate", "all_reduce", "--cluster", str(file), "--sizes", "1K", "--algorithms", "ring"])
        said = [line for line in told.getvalue().splitlines() if not line.startswith("simulating:")]
    assert code in (0, 2), said
    assert code == 0 or (len(said) == 1 and "c.yaml, line" in said[0]), said


def _read_or_refuse(text: str) -> None:
    try:
        assert parse_cluster(text, "c.yaml").nodes > 0
    except InputError as error:
        assert str(error).startswith("c.yaml") and "\n" not in str(error)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(InputError):
        parse_cluster("[" * 600, "c.yaml")


def test_which_algorithm_is_the_fastest() -> None:
    def case(algorithm: str, size: int, seconds: float, unavailable: str = "") -> Case:
        return Case(algorithm, "best", 2, 16, size, seconds, unavailable=unavailable)

    ring = [case("ring", 1, 9.0), case("ring", 2, 5.0), case("ring", 4, 1.0)]
    tree = [case("tree", 1, 1.0), case("tree", 2, 5.0), case("tree", 4, 6.0)]
    third = [case("hierarchical", 1, 0.5), case("hierarchical", 4, 0.0, "cannot run")]
    assert fastest_of([*ring, *tree, *third]) == {(16, 1): "hierarchical", (16, 2): "ring", (16, 4): "ring"}


def test_all_reduce_of_a_cluster_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, plot, trace = tmp_path / "cluster.yaml", tmp_path / "a.svg", tmp_path / "t.png"
    file.write_text("nodes: 4 x dgx-a100\nnetwork: rail-optimised(1:1)\nin_network_reduction: yes\n")
    arguments = ["all_reduce", "--cluster", str(file), "--sizes", "1K,1M", "--vary", "nodes"]
    assert run(["simulate", *arguments, "--plot", str(plot), "--trace", str(trace), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    pictures = (plot, trace, tmp_path / "a-crossover.svg")
    assert answer["simulated"] is True and all(picture.stat().st_size > 0 for picture in pictures)
    assert {case["ranks"] for case in answer["cases"]} == {16, 32}
    assert {case["algorithm"] for case in answer["cases"]} == {*COMPARED["all_reduce"]}
    assert all(case["seconds"] > 0 for case in answer["cases"])


def test_clusters_that_are_too_large_are_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "huge.yaml"
    file.write_text("nodes: 100000 x dgx-2\nnetwork: fat-tree(1:1)\nradix: 4\n")
    for what in ("all_reduce", "latency"):
        assert run(["simulate", what, "--cluster", str(file)]) == 2
        said = capsys.readouterr().err
        assert "line 1: 100000 nodes with 16 GPUs each are 1600000; at most 262144 are simulated" in said
