"""`--vary` of collectives: networks, tapers, PXN and ranks of a node; each is what its setting alone gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from verb_runs import Run, simulated

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
        (
            ("--vary", "colour"),
            "'colour' does not vary for all_reduce: write some of gdr,nodes,network,taper,pxn,ranks",
        ),
    ],
)
def test_bad_input_is_one_line(run: Run, words: tuple[Any, ...], said: str) -> None:
    code, out, err = run("simulate", *WORDS, *words)
    assert (code, out) == (2, "") and said in err.strip().splitlines()[-1]
