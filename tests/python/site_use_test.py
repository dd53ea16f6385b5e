"""`waywiser report --savings`: gains expected between nodes, against what a site has, for what its jobs send."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import made_up
import pytest

from waywiser import cli
from waywiser.apply.setting import Setting, Settings
from waywiser.errors import InputError
from waywiser.profile import Profile
from waywiser.prove.gains import Gain, expected_gain
from waywiser.prove.site_use import SiteUse, messages_told, today_told


def between_nodes(label: bool) -> Profile:
    """Two GPUs, each with paths to one of another node: without GPUDirect RDMA twice as fast from 1 MiB on."""
    series = []
    for gdr, gdrcopy in (("on", "on"), ("off", "on"), ("off", "off")):
        points = []
        for size in (1 << 10, 1 << 20, 1 << 30):
            seconds = size / 1e10 / (2 if gdr == "off" and size > 1 << 10 else 1) * (3 if gdrcopy == "off" else 1)
            points.append({"bytes": size, "seconds": seconds, "low": seconds, "high": seconds})
        parameters = {"device": "mlx5_0:1", "gdr": gdr, "gdrcopy": gdrcopy, "transports": "rc"}
        path = {"mechanism": "ucx", "source": "gpu0", "destination": "other:gpu0", "processes": 2}
        series.append({"path": path | {"parameters": parameters}, "operation": "latency", "points": points})
    value = made_up.profile(2)
    example = value["series"][0]
    filled = [{**example, **one, "points": [{**example["points"][0], **p} for p in one["points"]]} for one in series]
    return made_up.read(value | {"series": filled, "simulated": label})


@pytest.mark.parametrize(("label", "basis"), [(True, "prediction: simulated"), (False, "expected, not proved")])
def test_what_is_expected_between_nodes(label: bool, basis: str) -> None:
    profile = between_nodes(label)
    off = Setting("ucx", "UCX_IB_GPU_DIRECT_RDMA", "n", "try", "", "x")
    no_copy = Setting("ucx", "UCX_TLS", "^gdr_copy", "all", "", "y")
    settings = Settings("abcd", "node")
    assert expected_gain(profile, settings) is None
    found = expected_gain(profile, replace(settings, settings=(off,)))
    assert found == Gain(pytest.approx(2**0.5), basis)  # 1 KiB alike, 1 MiB twice as fast, 1 GiB is not counted
    large = Setting("ucx", "UCX_RNDV_MEMTYPE_DIRECT_SIZE", "65536", "inf", "", "x")
    assert expected_gain(profile, replace(settings, settings=(large,))) == found
    by_size = Setting("ucx", "UCX_DISTANCE_BW", "phb:3668MBs", "phb:auto", "", "x")
    assert expected_gain(profile, replace(settings, settings=(by_size,))) == found
    worse = expected_gain(profile, replace(settings, settings=(off, no_copy)))
    assert worse and worse.factor == pytest.approx(2**0.5 / 3)


def test_the_gain_is_against_what_a_site_has_today() -> None:
    profile = between_nodes(True)
    basis = "prediction: simulated"
    both_off = SiteUse(today_told("UCX_IB_GPU_DIRECT_RDMA=n UCX_TLS=^gdr_copy"))
    # The defaults are best here for small messages: nothing to gain over them, but over neither.
    settings = Settings("abcd", "node")
    assert expected_gain(profile, settings) is None
    assert expected_gain(profile, settings, both_off) == Gain(pytest.approx(3 / 2**0.5), basis)
    off = Settings("abcd", "node", settings=(Setting("ucx", "UCX_IB_GPU_DIRECT_RDMA", "n", "try", "", "x"),))
    assert expected_gain(profile, off, both_off) == Gain(pytest.approx(3), basis)
    assert expected_gain(profile, off, SiteUse(today_told("UCX_IB_GPU_DIRECT_RDMA=n"))) == Gain(1.0, basis)


def test_the_gain_is_weighted_by_the_messages_of_the_jobs() -> None:
    profile = between_nodes(True)
    off = Settings("abcd", "node", settings=(Setting("ucx", "UCX_IB_GPU_DIRECT_RDMA", "n", "try", "", "x"),))

    def gain(messages: str) -> float:
        found = expected_gain(profile, off, SiteUse(messages=messages_told(messages)))
        assert found is not None
        return found.factor

    assert gain("1K=5") == pytest.approx(1) and gain("1M=5") == pytest.approx(2)
    assert gain("1K=1024,1M=1") == pytest.approx(2 / 1.5)  # as many bytes of each
    with pytest.raises(InputError, match="no time of 512 bytes, only of 1024 to 1048576"):
        gain("512=1")


@pytest.mark.parametrize(
    ("option", "text"),
    [("--today", "UCX_TLS"), ("--today", "NCCL_ALGO=Ring"), ("--messages", "8"), ("--messages", "8=0"),
     ("--messages", "8=1,8=2"), ("--messages", "x=1"), ("--messages", "8=inf")],
)  # fmt: skip
def test_what_is_told_of_a_site_is_read_or_refused(
    option: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("NodeType,GPUHours\nx,100\n")
    assert cli.run(["report", "--results", str(tmp_path), "--savings", str(jobs), option, text]) == 2
    said = capsys.readouterr().err
    assert option in said and said.count("\n") == 1
