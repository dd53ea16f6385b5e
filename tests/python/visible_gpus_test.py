"""CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER as the driver reads them, for ranks and for the doctor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from doctor_machines import GPU0, GPU1, STATUS, TWO_GPUS, build, gpu, numa

from waywiser.doctor import placement
from waywiser.look.finding import Status, Unknown
from waywiser.look.root import Root
from waywiser.look.visible_gpus import DriverGpu, visible
from waywiser.run.rank_setup import setup_for
from waywiser.topology.load import read_machine

A, B = "GPU-ee8e9a35-0764-b5f8-6827-a4425fb4cb21", "GPU-2c0d5c60-956c-d580-e950-6624cb3d71b6"
H100 = [DriverGpu("gpu0", "0000:00:06.0", "H100", A), DriverGpu("gpu1", "0000:00:07.0", "H100", B)]


# What cuDeviceGetPCIBusId said on two H100 with driver 580.159.04; no GPU where cuInit fails.
@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", ""), ("-1", ""), ("0", "0"), ("1", "1"), ("1,0", "10"), ("0,0", ""), ("1,1,0", ""), ("0,7", "0"),
        ("7", ""), ("0,-1,1", "0"), ("-1,0", ""), (" 1 , 0 ", "10"), ("1gpu,0x", "10"), ("0,foo,1", "0"), ("foo", ""),
        ("+1", "1"), ("01", "1"), ("0x1", "0"), ("1.9,0", "10"), ("0 1", "0"), ("0;1", "0"), (",0", ""), ("0,,1", "0"),
        ("0,", "0"), (B, "1"), (f"{B},{A}", "10"), (B[:12], "1"), (B[:5], "1"), ("GPU-", ""), ("GPU", ""),
        (f"{A},{A}", ""), (f"{A},{A[:13]}", ""), (f"0,{B}", "0"), (f"{B},0", "1"), (f"{A},0", "0"),
        (f"GPU-{B[4:].upper()}", "1"), (f"gpu-{B[4:]}", ""), (B[4:], ""), (f"{B} ", "1"), (f" {B}", ""),
        (f"{B},foo,{A}", "1"), (f"{B},GPU-ffffffff", "1"), (f"{B}, {A}", "1"), ("4294967296", "0"),
        ("4294967297", "1"), ("99999999999999999999", ""), (f"{B}0", "1"), ("0,0,7", ""), ("0,7,0", "0"), ("all", ""),
        ("none", ""), ("1-", "1"), ("1:0", "1"),
    ],
)  # fmt: skip
def test_the_variable_is_read_as_cuda_reads_it(text: str, seen: str) -> None:
    found = visible({"CUDA_VISIBLE_DEVICES": text}, H100)
    assert found.gpus == tuple(f"gpu{number}" for number in seen) and found.count == len(seen)
    assert bool(found.why) or len(seen) == text.count(",") + 1 or " " in text or ";" in text


def test_orders() -> None:
    assert visible({}, H100).gpus == visible({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, H100).gpus == ("gpu0", "gpu1")
    for order in ("foo", ""):  # cuInit fails
        refused = visible({"CUDA_DEVICE_ORDER": order}, H100)
        assert refused.gpus == () and "CUDA does not start" in refused.why
    unlike = [DriverGpu("gpu0", model="T4", uuid=A), DriverGpu("gpu1", model="A100", uuid=B)]
    unknown = visible({"CUDA_VISIBLE_DEVICES": "1"}, unlike)
    assert (unknown.gpus, unknown.count) == (None, 1) and "not known to be alike" in unknown.why
    assert visible({"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, unlike).gpus == ("gpu1",)
    assert visible({"CUDA_VISIBLE_DEVICES": B}, unlike).gpus == ("gpu1",)
    assert visible({"CUDA_VISIBLE_DEVICES": ""}, unlike).gpus == ()


def test_mig_instances() -> None:
    divided = [DriverGpu("gpu0", "", "A100", A, ()), DriverGpu("gpu1", "", "A100", B, ("MIG-7c01-a", "MIG-55ee-b"))]
    for text, seen in (
        ("MIG-55ee-b", ("gpu1",)),
        ("MIG-55", ("gpu1",)),
        ("MIG-99", ()),
        ("0,1", ("gpu1",)),
        ("0", ("gpu0",)),
    ):
        assert visible({"CUDA_VISIBLE_DEVICES": text}, divided).gpus == seen
    assert "shows one of its instances" in visible({}, divided).why
    assert visible({"CUDA_VISIBLE_DEVICES": f"MIG-{B}/1/0"}, H100).gpus == ("gpu1",)
    assert visible({"CUDA_VISIBLE_DEVICES": "MIG-55ee-b"}, H100).gpus is None


def rank(local_rank: int, ranks: int, environment: Mapping[str, str], driver: object = None) -> object:
    return setup_for(
        read_machine("dgx-1v"),
        None,
        local_rank,
        ranks,
        environment,
        set(range(80)),
        driver=driver,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("text", "gpus"), [("4,5,6,7", "4567"), ("7", "7"), ("7,2", "72"), ("6,9,1", "6")])
def test_ranks_are_bound_near_the_gpus_that_they_see(text: str, gpus: str) -> None:
    for local_rank in range(len(gpus)):
        one = rank(local_rank, len(gpus), {"CUDA_VISIBLE_DEVICES": text})
        number = int(gpus[local_rank])
        assert one.gpu == f"gpu{number}" and one.nic == f"nic{number // 2}"  # type: ignore[attr-defined]
        assert one.memory == number // 4 and "CUDA_VISIBLE_DEVICES" not in one.variables  # type: ignore[attr-defined]


def test_ranks_by_uuid(tmp_path: Path) -> None:
    listed = "".join(f"GPU {i}: Tesla V100 (UUID: GPU-{i}1112222-3333-4444-5555-666677778888)\n" for i in range(8))
    listed = listed.replace(
        "\nGPU 6", "\n  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\nGPU 6"
    )

    def driver(environment: Mapping[str, str]) -> Root:
        return build(tmp_path, {}, {"nvidia-smi -L": listed}, environment)

    for text, gpu_ in (("GPU-71112222", "gpu7"), ("MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", "gpu5")):
        one = rank(0, 1, {"CUDA_VISIBLE_DEVICES": text}, driver)
        assert one.gpu == gpu_ and one.memory == 1  # type: ignore[attr-defined]
        unknown = rank(0, 1, {"CUDA_VISIBLE_DEVICES": text})
        assert unknown.gpu == "" and len(unknown.cpus) == 80  # type: ignore[attr-defined]
        assert any("unknown; ranks are bound near no GPU" in line for line in unknown.why)  # type: ignore[attr-defined]


@pytest.mark.parametrize("environment", [{"CUDA_VISIBLE_DEVICES": ""}, {"CUDA_DEVICE_ORDER": "pci"}])
def test_a_rank_without_a_gpu_gets_no_nic_near_one(environment: dict[str, str]) -> None:
    one = rank(0, 2, environment)
    assert one.gpu == one.nic == "" and len(one.cpus) == 40  # type: ignore[attr-defined]
    assert any("ranks are bound near no GPU" in line for line in one.why)  # type: ignore[attr-defined]


FAR = (
    gpu(cpus="0-3")
    | gpu(GPU1, "0000:64:00.0", numa=1, cpus="4-7")
    | numa(2)
    | {"/proc/self/status": STATUS.format("4-7")}
)


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("0", Status.problem, "far from gpu0"), ("1", Status.ok, "near to gpu1"), ("1,5", Status.ok, "near to gpu1"),
        ("GPU-2c", Status.ok, "near to gpu1"), ("", Status.absent, "sees no GPU"), ("1,1", Status.absent, "twice"),
    ],
)  # fmt: skip
def test_the_doctor_asks_about_the_gpus_that_are_seen(tmp_path: Path, text: str, status: Status, words: str) -> None:
    listed = {"nvidia-smi -L": f"GPU 0: H100 (UUID: {A})\nGPU 1: H100 (UUID: {B})\n"}
    found = placement.affinity(build(tmp_path, FAR, listed, {"CUDA_VISIBLE_DEVICES": text}))
    assert found.status is status and words in found.text


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("0,0", Status.problem, "twice"), ("0,9", Status.warning, "1 of 2 GPUs"), ("0,-1,1", Status.warning, "1 of 2"),
        (A, Status.unknown, "UUIDs"), ("1,0", Status.ok, "all 2"),
    ],
)  # fmt: skip
def test_hidden_gpus_are_counted_as_cuda_counts(tmp_path: Path, text: str, status: Status, words: str) -> None:
    from waywiser.doctor.check import looked
    from waywiser.doctor.checks import CHECKS

    (check,) = [one for one in CHECKS if one.id == "D17"]
    found = looked(check, build(tmp_path, TWO_GPUS, {}, {"CUDA_VISIBLE_DEVICES": text}))
    assert found.status is status and words in found.text


def test_the_driver_decides_about_unlike_gpus(tmp_path: Path) -> None:
    unlike = FAR | {f"/proc/driver/nvidia/gpus/{GPU0}/information": "Model: T4\n"}
    order = {"waywiser-probe cuda": json.dumps({"gpus": [{"bus_id": GPU1}], "peers": []})}
    environment = {"CUDA_VISIBLE_DEVICES": "0"}
    assert placement.affinity(build(tmp_path / "a", unlike, order, environment)).status is Status.ok
    with pytest.raises(Unknown, match="gpu0 are far, but this process may not see them"):
        placement.affinity(build(tmp_path / "b", unlike, {}, environment))
