"""`--vary` of collectives: networks, tapers, PXN and ranks of a node; each is what its setting alone gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from verb_runs import Run, simulated

from waywiser.simulator.collectives import COMPARED, FURTHER

WORDS = ("all_reduce", "--machine", "dgx-a100", "--nodes", "4", "--sizes", "64M", "--algorithms", "nccl")


def cases(capsys: pytest.CaptureFixture[str], *words: str) -> dict[tuple[str, int], float]:
    told = simulated(capsys, *words)["cases"]
    return {(case["variant"], case["ranks"]): case["seconds"] for case in told}


def test_a_taper_and_a_network_are_those_of_a_cluster_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The ring of NCCL stays in its rails; with a taper the fat tree is what it shares."""
    found = cases(capsys, *WORDS, "--vary", "network,taper")
    assert list(dict.fromkeys(variant for variant, _ in found)) == [
        "switch, 1:1",
        *(f"{kind}, {taper}:1" for kind in ("fat-tree", "rail-optimised") for taper in (1, 2, 4)),
    ]
    for kind, taper in (("fat-tree", 4), ("rail-optimised", 2)):
        file = tmp_path / f"{kind}.yaml"
        file.write_text(f"nodes: 4 x dgx-a100\nnetwork: {kind}({taper}:1)\n")
        alone = cases(capsys, "all_reduce", "--cluster", str(file), *WORDS[5:])
        assert found[f"{kind}, {taper}:1", 32] == alone["", 32]
    by_taper = cases(capsys, *WORDS, "--vary", "taper")
    assert by_taper == {(f"{taper}:1", 32): found[f"fat-tree, {taper}:1", 32] for taper in (1, 2, 4)}
    assert by_taper["1:1", 32] <= by_taper["2:1", 32] <= by_taper["4:1", 32]


def test_ranks_are_the_first_gpus_of_each_node(capsys: pytest.CaptureFixture[str]) -> None:
    found = cases(capsys, *WORDS, "--vary", "ranks")
    assert list(found) == [("", ranks) for ranks in (4, 8, 16, 32)]
    assert found["", 8] == cases(capsys, *WORDS, "--order", "0,1")["", 8]


def test_pxn_is_that_of_its_setting(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("all_to_all", *WORDS[1:-2], "--algorithms", "direct")
    found = cases(capsys, *words, "--vary", "pxn")
    assert found == {
        (f"pxn {word}", 32): cases(capsys, *words, "--set", f"pxn={word}")["", 32] for word in ("off", "on")
    }


def test_every_algorithm_that_can_run_is_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    """On one node of A100 no NVSwitch and no switch of a network adds, so NVLS and CollNet are left out."""
    found = simulated(
        capsys, "all_reduce", "--machine", "dgx-a100", "--nodes", "1", "--sizes", "1M,64M", "--vary", "algorithm"
    )
    names = {case["algorithm"] for case in found["cases"]}
    assert {"ring", "double_tree", "halving_doubling", "nccl", "nccl_ring", "nccl_tree"} <= names
    assert not names & {"nccl_nvls", "nccl_nvls_tree", "nccl_collnet", "in_network"}
    for operation, more in FURTHER.items():
        told = simulated(
            capsys, operation, "--machine", "dgx-h100", "--nodes", "2", "--sizes", "1M", "--vary", "algorithm"
        )
        named = {case["algorithm"] for case in told["cases"]}
        assert {"nccl_ring"} | set(COMPARED[operation]) - {"in_network"} <= named | {"direct"}
        assert named <= {*COMPARED[operation], *more}


def test_the_tables_name_what_varies(run: Run) -> None:
    code, out, err = run("simulate", *WORDS, "--vary", "taper")
    assert code == 0 and "32, 4:1" in out, err
    assert {"1:1", "2:1", "4:1"} <= set(out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--vary", "nodes,ranks"), "both change the number of GPUs"),
        (("--vary", "pxn", "--set", "pxn=on"), "pxn is in --vary and in --set"),
        (("--vary", "ranks", "--order", "0,1"), "leave out --order"),
        (("--vary", "algorithm"), "leave out --algorithms"),
        (
            ("--vary", "colour"),
            "'colour' does not vary for all_reduce: write some of gdr,nodes,network,taper,pxn,ranks,algorithm",
        ),
    ],
)
def test_bad_input_is_one_line(run: Run, words: tuple[Any, ...], said: str) -> None:
    code, out, err = run("simulate", *WORDS, *words)
    assert (code, out) == (2, "") and said in err.strip().splitlines()[-1]
