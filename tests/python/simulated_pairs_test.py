"""`waywiser simulate bandwidth` of pairs within a node, and of several at once; nodes with plain Ethernet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from verb_runs import Run, simulated

SIZE = 64 << 20


def rates(curves: list[dict[str, Any]]) -> list[float]:
    """Bytes per second of one pair of each curve."""
    return [SIZE / curve["points"][0]["seconds"] for curve in curves]


def within(capsys: pytest.CaptureFixture[str], machine: str, pairs: str, *more: str) -> list[dict[str, Any]]:
    words = ("bandwidth", "--machine", machine, "--nodes", "1", "--sizes", "64M", "--pair", pairs, *more)
    curves: list[dict[str, Any]] = simulated(capsys, *words)["curves"]
    return curves


def test_one_node_is_asked_for_a_pair_within_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Published for dgx-1v: 48.34 GB/s over two NVLinks."""
    (curve,) = within(capsys, "dgx-1v", "gpu0-to-gpu3")
    assert rates([curve]) == pytest.approx([48.34e9], rel=0.02)


def test_pairs_on_links_of_their_own_keep_their_rates(capsys: pytest.CaptureFixture[str]) -> None:
    alone = [rates(within(capsys, "dgx-1v", pair))[0] for pair in ("gpu0-to-gpu3", "gpu1-to-gpu5")]
    curves = within(capsys, "dgx-1v", "gpu0-to-gpu3,gpu1-to-gpu5")
    assert [one["setting"]["pair"] for one in curves] == ["gpu0>gpu3", "gpu1>gpu5", "all"]
    assert rates(curves[:2]) == pytest.approx(alone)
    assert rates(curves)[2] == pytest.approx(min(alone))  # until the last one has ended


def test_pairs_share_what_both_cross(capsys: pytest.CaptureFixture[str]) -> None:
    """gpu0 and gpu1 of dgx-1v are below one PCIe switch."""
    (alone,) = rates(within(capsys, "dgx-1v", "gpu0-to-host0"))
    both = rates(within(capsys, "dgx-1v", "gpu0-to-host0,gpu1-to-host0"))
    assert both == pytest.approx([alone / 2] * 3, rel=0.05)
    apart = rates(within(capsys, "dgx-1v", "gpu0-to-host0,gpu2-to-host0"))
    assert apart == pytest.approx([alone] * 3, rel=0.05)


def test_both_directions_are_two_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    (once,) = rates(within(capsys, "dgx-1v", "gpu0-to-gpu3"))
    assert rates(within(capsys, "dgx-1v", "gpu0-to-gpu3,gpu3-to-gpu0")) == pytest.approx([once] * 3, rel=0.01)


def test_pairs_between_nodes_with_settings(capsys: pytest.CaptureFixture[str], run: Run) -> None:
    """Two GPUs below one switch send over two cards, or over the same one."""
    words = ("bandwidth", "--machine", "dgx-a100", "--sizes", "64M")
    (alone,) = rates(simulated(capsys, *words)["curves"])
    both = simulated(capsys, *words, "--pair", "gpu0-to-gpu0,gpu1-to-gpu1", "--vary", "gdr")["curves"]
    assert [one["setting"] for one in both] == [{"gdr": "off"}, {"gdr": "on"}]
    assert rates(both)[1] == pytest.approx(alone, rel=0.01) or rates(both)[1] == pytest.approx(alone / 2, rel=0.01)
    code, out, _ = run("simulate", *words, "--pair", "gpu0-to-gpu0,gpu1-to-gpu1")
    assert code == 0 and "of 2 pairs at once between two dgx-a100" in " ".join(out.split()) and "SIMULATED" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("latency", "--pair", "gpu0>gpu1,gpu2>gpu3"), "several at once are for bandwidth"),
        (("bandwidth", "--pair", "gpu0>gpu1,gpu0>gpu1"), "a pair is there twice"),
        (("bandwidth", "--pair", "gpu0>gpu1,gpu0>gpu9"), "'gpu9' is not in dgx-1v"),
        (("bandwidth", "--pair", "gpu0,gpu1"), "write two places"),
        (("bandwidth", "--pair", "gpu0>gpu1>gpu2"), "write two places"),
    ],
)
def test_wrong_pairs_are_one_line(run: Run, words: tuple[str, ...], message: str) -> None:
    code, out, err = run("simulate", *words, "--machine", "dgx-1v", "--nodes", "1")
    assert (code, out, len(err.splitlines())) == (2, "", 1) and message in err


def test_a_pair_without_peer_access_says_why(run: Run) -> None:
    words = ("bandwidth", "--machine", "dgx-1v", "--nodes", "1", "--sizes", "64M", "--json")
    for pairs in ("gpu0>gpu5", "gpu0>gpu1,gpu0>gpu5"):
        code, out, _ = run("simulate", *words, "--pair", pairs)
        assert code == 0 and "no peer access between gpu0 and gpu5" in out


@pytest.fixture
def cloud(tmp_path: Path, run: Run) -> str:
    file = tmp_path / "cloud.json"
    words = ("--gpus", "4xV100-SXM2", "--cpus", "2x6148", "--nics", "1x10GbE", "--name", "cloud")
    assert run("machine", "new", *words, "--out", str(file))[0] == 0
    return str(file)


def test_plain_ethernet_carries_tcp_alone(capsys: pytest.CaptureFixture[str], run: Run, cloud: str) -> None:
    words = ("--machine", cloud, "--sizes", "64M")
    usual = simulated(capsys, "bandwidth", *words)["curves"]
    assert usual == simulated(capsys, "bandwidth", *words, "--path", "ucx transports=network-tcp")["curves"]
    assert rates(usual)[0] < 1.25e9
    (refused,) = simulated(capsys, "bandwidth", *words, "--path", "ucx transports=ib")["curves"]
    assert not refused["points"] and "needs RDMA" in refused["unavailable"] and "eth0" in refused["unavailable"]
    code, _, err = run("simulate", "bandwidth", *words, "--vary", "gdr")
    assert code == 2 and "settings of UCX over RDMA" in err
    on, off = (
        simulated(capsys, "all_reduce", *words, "--algorithms", "nccl_ring", "--set", f"gdr={gdr}")["cases"]
        for gdr in ("on", "off")
    )
    assert on[0]["seconds"] == off[0]["seconds"] > 2 * SIZE * 7 / 8 / 1.25e9


def test_settings_for_plain_ethernet_name_no_rdma(run: Run, cloud: str) -> None:
    code, out, err = run("apply", "--machine", cloud, "--for", "bandwidth")
    assert code == 0, err
    assert "NCCL_NET_GDR" not in out and "UCX_IB" not in out
