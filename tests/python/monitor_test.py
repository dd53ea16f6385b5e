"""Counters, rates, warnings, metrics and the view of `waywiser monitor`."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import made_up
import pytest
from doctor_machines import Files, build, gpu, nic, smi

from waywiser import cli
from waywiser.look.commands import Replayed
from waywiser.look.root import Root
from waywiser.monitor.counters import (
    _ERRORS,
    _RDMA_AGAIN,
    _RDMA_ERRORS,
    Sample,
    fresh,
    moved_between,
    packets_between,
    rates_between,
    read_counters,
)
from waywiser.monitor.exporter import ERRORS, serve, text_of
from waywiser.monitor.load import LoadWatch, expected_rates
from waywiser.monitor.watcher import Watcher
from waywiser.run.watch import watched

NVLINKS = "GPU 0: H200 (UUID: x)\n\t Link 0: Data Tx: {0} KiB\n\t Link 0: Data Rx: 5 KiB\n\t Link 1: Data Tx: {0} KiB\n"
SNMP = "Tcp: RtoAlgorithm RetransSegs\nTcp: 1 77\n"


def files(received: int, port_words: int = 0) -> Files:
    net, port = "/sys/class/net/eth0/statistics", "/sys/class/infiniband/mlx5_0/ports/1"
    counters = {f"{net}/rx_bytes": str(received), f"{net}/tx_bytes": "9", f"{net}/rx_dropped": "3"}
    counters |= {f"{port}/counters/port_rcv_data": str(port_words), f"{port}/hw_counters/packet_seq_err": "2"}
    return {**gpu(), **nic(), **counters, "/proc/net/snmp": SNMP}


def machine(folder: Path, received: int = 1000, port_words: int = 0, link: int = 10) -> Root:
    folder.mkdir()
    commands = {"nvidia-smi nvlink -gt d": NVLINKS.format(link)}
    commands |= smi(PCI__Tx_Throughput="2000 KB/s", PCI__Replays_Since_Reset="4")
    return build(folder, files(received, port_words), commands)


def test_counters_of_every_kind(tmp_path: Path) -> None:
    sample = read_counters(machine(tmp_path / "a", 1000, 25, 10))
    assert sample.bytes["network", "eth0", "received"] == 1000
    assert sample.bytes["rdma", "mlx5_0:1", "received"] == 100
    assert sample.bytes["nvlink", "gpu0", "sent"] == 20 * 1024
    assert sample.rates["pcie", "gpu0", "sent"] == 2e6
    assert sample.errors["network", "tcp", "retransmitted"] == 77
    assert sample.errors["rdma", "mlx5_0:1", "packet_seq_err"] == 2
    assert sample.errors["pcie", "gpu0", "replays"] == 4
    assert sample.missing == ["needs a trial on the machine itself, which this folder does not record"]
    assert sample.moved("network") == 1009


def test_a_storage_device_counts_once_and_is_no_link(tmp_path: Path) -> None:
    ten_and_four = "5 0 10 1 2 0 4 1 0 2 2"
    blocks = {f"/sys/block/{name}/stat": ten_and_four for name in ("nvme0n1", "md0", "loop3", "zram0")}
    root = build(tmp_path / "a", {**blocks, "/sys/block/md0/slaves/nvme0n1/stat": "", "/sys/block/sda/stat": "odd"}, {})
    sample = read_counters(root)
    found = {key[1:]: count for key, count in sample.bytes.items() if key[0] == "storage"}
    assert found == {("nvme0n1", "received"): 5120, ("nvme0n1", "sent"): 2048}
    seen = watched(Sample(), sample, 1.0, [])
    assert seen.moved == {}, "a device that came in between"
    moved = Sample({("storage", "nvme0n1", "received"): 1 << 40}), Sample({("storage", "nvme0n1", "received"): 0})
    seen = watched(moved[1], moved[0], 1.0, [])
    assert seen.roads == []
    assert "storage devices 1 TiB" in seen.lines()[0]


def test_bytes_of_pcie_links_where_the_driver_counts_them(tmp_path: Path) -> None:
    root = machine(tmp_path / "a")
    for told, counted in (('{"pcie": [{"sent": 7, "received": 9}]}', True), ('{"pcie": [null]}', False)):
        answers = {"waywiser-probe nvml": told, **smi(PCI__Tx_Throughput="2000 KB/s")}
        sample = read_counters(Root(root.folder, commands=Replayed(answers)))
        assert (("pcie", "gpu0", "sent") in sample.rates) is not counted
        assert sample.bytes.get(("pcie", "gpu0", "received")) == (9 if counted else None)
        assert any("does not count the bytes of PCIe" in line for line in sample.missing) is not counted
    answers = {"waywiser-probe nvml": '{"pcie": [{"sent": -1, "received": "x"}, 3]}'}
    assert not read_counters(Root(root.folder, commands=Replayed(answers))).moved("pcie")


def test_a_machine_with_nothing_says_so(tmp_path: Path) -> None:
    sample = read_counters(build(tmp_path, {}))
    assert sample.bytes == {} and sample.missing == ["no NVIDIA GPU: no NVLink and PCIe counters"]


def test_a_software_rdma_card_counts_packets(tmp_path: Path) -> None:
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    told = {f"{port}/hw_counters/rcvd_pkts": "7", f"{port}/hw_counters/sent_pkts": "9"}
    before = read_counters(build(tmp_path / "a", nic() | told))
    assert before.packets == {("rdma", "mlx5_0:1", "received"): 7, ("rdma", "mlx5_0:1", "sent"): 9}
    told |= {f"{port}/hw_counters/sent_pkts": "19"}
    after = read_counters(build(tmp_path / "b", nic() | told))
    assert packets_between(before, after) == {"rdma": 10} and not after.moved("rdma")
    real = read_counters(build(tmp_path / "c", nic() | told | {f"{port}/counters/port_xmit_data": "3"}))
    assert real.bytes["rdma", "mlx5_0:1", "sent"] == 12 and ("rdma", "mlx5_0:1", "sent") not in real.packets


def test_rates_and_a_counter_that_was_reset(tmp_path: Path) -> None:
    before = read_counters(machine(tmp_path / "a", 1000, 1000))
    after = read_counters(machine(tmp_path / "b", 5000, 10))
    rates = rates_between(before, after, 2.0)
    assert rates["network", "eth0", "received"] == 2000
    assert ("rdma", "mlx5_0:1", "received") not in rates
    assert moved_between(before, after)["network"] == 4000


def test_a_slow_road_is_named_only_under_load() -> None:
    key = ("nvlink", "gpu0", "sent")
    watch = LoadWatch({"nvlink": 100e9})
    for _ in range(9):
        assert watch.add({key: 50e9}) == []
    assert watch.add({key: 50e9}) == ["gpu0 nvlink sent: 50.0 GB/s of 100 GB/s (50 %) under load"]
    assert watch.add({key: 1e9}) == []  # idle
    fine = LoadWatch({"nvlink": 100e9})
    assert [fine.add({key: 90e9}) for _ in range(12)] == [[]] * 12
    assert [fine.add({("network", "eth0", "sent"): 1.0}) for _ in range(12)] == [[]] * 12


def test_what_the_profile_lets_expect() -> None:
    profile = made_up.read(made_up.profile(2))
    expected = expected_rates(profile, {"mlx5_0:1": 400.0})
    assert 300e9 < expected["nvlink"] < 500e9 and 40e9 < expected["pcie"] < 70e9 and expected["rdma"] == 50e9
    simulated = made_up.read({**made_up.profile(2), "simulated": True})
    assert expected_rates(simulated, {}) == {}


ABOUT = {"version": "0", "fingerprint": "abcd1234", "machine": "node"}


def test_every_kind_of_error_has_a_counter() -> None:
    assert set(ERRORS) == {*_ERRORS, *_RDMA_ERRORS, *_RDMA_AGAIN, "retransmitted", "replays"}
    assert len({name for name, _ in ERRORS.values()}) == len(ERRORS)


def watcher(tmp_path: Path, **more: Any) -> Watcher:
    roots = [machine(tmp_path / str(i), 1000 * (i + 1)) for i in range(4)]
    looks = iter([roots[0], roots[0], roots[1], roots[2], roots[3]])
    times = iter(range(100))
    return Watcher(look=lambda: next(looks), clock=lambda: float(next(times)), **more)


def test_watcher_counts_from_its_start(tmp_path: Path) -> None:
    watching = watcher(tmp_path, job="17")
    watching.view()
    view = watching.view()
    assert view.rates["network", "eth0", "received"] == 1000
    assert (view.job_seconds, view.job_bytes["network"]) == (2.0, 2000)


def test_metrics_as_prometheus_reads_them(tmp_path: Path) -> None:
    text = text_of(watcher(tmp_path, job="17").view(), ABOUT)
    assert 'waywiser_road_bytes_total{device="eth0",direction="received",road="network"} 2000.0' in text
    assert 'waywiser_tcp_retransmissions_total{device="tcp",road="network"} 77.0' in text
    assert 'waywiser_build_info{fingerprint="abcd1234",machine="node",version="0"} 1.0' in text
    assert 'waywiser_road_bytes_per_second{device="gpu0",direction="sent",road="pcie"} 2e+06' in text
    assert 'waywiser_job_seconds{job="17"} 1.0' in text and "waywiser_slow_roads 0.0" in text


def test_metrics_are_served(tmp_path: Path) -> None:
    server = serve(watcher(tmp_path).view, ABOUT, "127.0.0.1", 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=10) as answer:
            assert b"waywiser_road_bytes_total" in answer.read()
    finally:
        server.shutdown()


def test_once_on_this_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["monitor", "--once", "--seconds", "0.1", "--results", str(tmp_path)]
    assert cli.run(arguments) == 0
    assert "received in all" in capsys.readouterr().out
    assert cli.run([*arguments, "--text", "--job", "j\x1b[0m"]) == 0
    assert "waywiser_slow_roads 0.0" in capsys.readouterr().out
    assert isinstance(read_counters(fresh()), Sample)


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    server = serve(watcher(tmp_path).view, ABOUT, "127.0.0.1", 0)
    try:
        assert cli.run(["monitor", "--port", str(server.server_port), "--results", str(tmp_path)]) == 2
    finally:
        server.shutdown()
    assert "cannot serve" in capsys.readouterr().err
