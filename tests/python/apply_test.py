"""From a machine to settings: proposed and omitted settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import made_up
import pytest

from waywiser.apply import openmpi
from waywiser.apply.facts import Machine
from waywiser.apply.installed import Installed, refused
from waywiser.apply.job_libraries import find_job_libraries
from waywiser.apply.openmpi import COLLECTIVES, Rule, rules_file
from waywiser.apply.propose import settings_for
from waywiser.apply.render import render
from waywiser.apply.setting import LeftOut, Setting, Settings
from waywiser.look.finding import Unknown
from waywiser.topology.load import read_machine

UCX = {
    "UCX_POSIX_BW": "15360.00MBps",
    "UCX_TCP_MAX_BW": "2200.00MBps",
    "UCX_CMA_BW": "11145.00MBps",
    "UCX_TLS": "all",
    "UCX_CUDA_COPY_BW": "h2d:8300MBps,d2h:11660MBps,d2d:320GBps",
    "UCX_CUDA_IPC_BW": "auto",
}
OPENMPI = {
    "component pml ucx": "",
    "OMPI_MCA_pml": "^ucx",
    "OMPI_MCA_pml_ucx_tls": "rc_verbs",
    "OMPI_MCA_pml_ucx_devices": "mlx*",
    "OMPI_MCA_btl_vader_eager_limit": "4096",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "cma",
}


def accepts(target: str, settings: Mapping[str, str]) -> str:
    return ""


def libraries(**known: Mapping[str, str]) -> dict[str, Installed]:
    absent = Installed(why_not="needs it, which is not installed")
    found = {name: Installed("1.0", values) for name, values in known.items()}
    return {target: found.get(target, absent) for target in ("ucx", "openmpi", "mpich", "nccl")}


def machine(gpus: int = 2, name: str = "dgx-1v", **factors: float) -> Machine:
    """A machine file with the made-up profile; `factors` multiply the times of UCX by transport."""
    value: dict[str, Any] = made_up.profile(gpus)
    for one in value["series"]:
        factor = factors.get(one["path"]["parameters"].get("transports", ""), 1.0)
        for point in one["points"]:
            for key in ("seconds", "low", "high", "p50", "p99"):
                point[key] *= factor
    return Machine(read_machine(name), made_up.read(value))


def values(settings: Settings) -> dict[str, str]:
    return {one.name: one.value for one in settings.settings}


def test_constants_that_are_far_off_are_corrected() -> None:
    found = values(settings_for(machine(), ("ucx",), libraries(ucx=UCX), accepts))
    copy = dict(part.split(":") for part in found["UCX_CUDA_COPY_BW"].split(","))
    assert 50_000 < int(copy["h2d"].removesuffix("MBs")) < 60_000
    assert copy["d2d"] == "320GBps" and UCX["UCX_CUDA_COPY_BW"].endswith(",d2d:320GBps")  # not measured: the default
    assert "UCX_TCP_MAX_BW" not in found  # the loopback device is no network
    assert "UCX_CMA_BW" not in found  # within 25 %


def two_machines(**shapes: tuple[dict[str, str], float]) -> Machine:
    """The made-up profile and, from GPU to GPU of another machine, paths with parameters and a rate."""
    value: dict[str, Any] = made_up.profile(4)
    pattern = next(
        one for one in value["series"] if one["path"]["mechanism"] == "ucx" and one["operation"] == "latency"
    )
    for name, (parameters, rate) in shapes.items():
        points = []
        for point in pattern["points"]:
            seconds = 1e-5 + point["bytes"] / rate
            changed = {
                "seconds": seconds,
                "low": 0.99 * seconds,
                "high": 1.01 * seconds,
                "p50": seconds,
                "p99": seconds,
            }
            points.append({**point, **changed})
        path = {"mechanism": name.rstrip("_2"), "source": "gpu0", "destination": "other:gpu0", "processes": 2}
        value["series"].append({**pattern, "path": {**path, "parameters": parameters}, "points": points})
    return Machine(read_machine("hse-c"), made_up.read(value))


def test_the_road_to_another_machine() -> None:
    known = {**UCX, "UCX_DISTANCE_BW": "phb:auto,node:auto,sys:220MBps", "UCX_RNDV_FRAG_SIZE": "host:512K,cuda:4M"}
    known["UCX_IB_GPU_DIRECT_RDMA"] = "try"
    topology = read_machine("hse-c")
    far = next(nic for nic in topology.ids("nic") if topology.relation("gpu0", nic) == "SYS")
    device = {"transports": "rc", "device": f"{topology.device(far).name}:1"}

    def proposed(direct: float, staged: float, chunk: float) -> dict[str, str]:
        here = two_machines(
            ucx=({**device, "gdr": "on"}, direct),
            ucx_2=({**device, "gdr": "off"}, staged),
            ucx_staged=({**device, "variant": "pipelined", "chunk": "512K"}, 5e9),
            ucx_staged_2=({**device, "variant": "pipelined", "chunk": "2M"}, chunk),
        )
        return values(settings_for(here, ("ucx",), libraries(ucx=known), accepts))

    found = proposed(10e9, 6e9, 5e9)  # GPUDirect RDMA across the CPUs is fine, and UCX assumes 220 MB/s
    assert "UCX_IB_GPU_DIRECT_RDMA" not in found and "UCX_RNDV_FRAG_SIZE" not in found
    assert found["UCX_DISTANCE_BW"].startswith("phb:auto,node:auto,sys:9")
    found = proposed(0.21e9, 6e9, 9e9)  # it is as slow as UCX thinks
    assert found["UCX_IB_GPU_DIRECT_RDMA"] == "n" and "UCX_DISTANCE_BW" not in found
    assert found["UCX_RNDV_FRAG_SIZE"] == f"host:{2 << 20},cuda:4M"


def test_a_setting_says_what_was_measured() -> None:
    settings = settings_for(machine(), ("ucx",), libraries(ucx=UCX), accepts)
    one = next(one for one in settings.settings if one.name == "UCX_POSIX_BW")
    assert one.measured and one.default == "15360.00MBps"
    assert "ucx(transports=posix) host0 to host0, two processes: " in one.why and "GB/s measured at" in one.why
    assert "UCX assumes 15360.00MBps" in one.why


def test_simulated_figures_are_labelled() -> None:
    value = {**made_up.profile(2), "simulated": True}
    simulated = Machine(read_machine("dgx-1v"), made_up.read(value))
    settings = settings_for(simulated, ("ucx",), libraries(ucx=UCX), accepts)
    assert settings.label == "Simulated: not a measurement"
    assert not any(one.measured for one in settings.settings)
    assert "simulated at" in settings.settings[0].why
    assert "# Simulated: not a measurement" in render(settings, "shell", ("ucx",))


def test_an_older_ucx_gets_one_rate() -> None:
    known = {**UCX, "UCX_CUDA_COPY_BW": "10000.00MBps"}
    assert values(settings_for(machine(), ("ucx",), libraries(ucx=known), accepts))["UCX_CUDA_COPY_BW"].isascii()
    assert ":" not in values(settings_for(machine(), ("ucx",), libraries(ucx=known), accepts))["UCX_CUDA_COPY_BW"]


def through_the_bar() -> Machine:
    """The machine with GDRCopy instead of copy engines, at the same rates."""
    value: dict[str, Any] = made_up.profile(2)
    for one in value["series"]:
        if one["path"]["mechanism"] == "copy_engine":
            one["path"] = {**one["path"], "mechanism": "bar_copy"}
    return Machine(read_machine("dgx-1v"), made_up.read(value))


def test_words_of_gdrcopy_are_those_of_the_version() -> None:
    """UCX refuses a list with another word, and one that lacks a word."""
    lists = {
        "get:650.00MBps,put:6911.00MBps": ("get", "put"),
        "get_dedicated:250.00MBps,get_shared:0.00Bps,put_dedicated:0.00Bps,put_shared:6911.00MBps": (
            "get_dedicated", "get_shared", "put_dedicated", "put_shared",
        ),
        "0MBs,get_dedicated:250MBs,put_shared:6911MBs": ("", "get_dedicated", "put_shared"),
    }  # fmt: skip
    for default, words in lists.items():
        known = {**UCX, "UCX_GDR_COPY_BW": default}
        value = values(settings_for(through_the_bar(), ("ucx",), libraries(ucx=known), accepts))["UCX_GDR_COPY_BW"]
        before, after = (dict(part.rpartition(":")[::2] for part in text.split(",")) for text in (default, value))
        assert tuple(after) == words
        changed = {word for word in words if after[word] != before[word]}
        assert changed == {word for word in words if word in ("get", "put", "get_dedicated", "put_shared")}


def test_what_the_library_does_not_know_is_left_out_with_the_reason() -> None:
    known = {name: value for name, value in UCX.items() if name != "UCX_POSIX_BW"}
    settings = settings_for(machine(), ("ucx", "mpich"), libraries(ucx=known), accepts)
    left = {one.name: one.why for one in settings.left_out}
    assert left["UCX_POSIX_BW"] == "1.0 does not know this variable here"
    assert settings.versions == {"ucx": "1.0", "mpich": "not installed: needs it, which is not installed"}


def test_what_a_dry_run_refuses_is_left_out_with_its_group() -> None:
    def refuses(target: str, settings: Mapping[str, str]) -> str:
        return "Invalid value" if "OMPI_MCA_pml" in settings else ""

    settings = settings_for(machine(), ("openmpi",), libraries(openmpi=OPENMPI), refuses)
    assert {one.name for one in settings.left_out} == {f"OMPI_MCA_pml{end}" for end in ("", "_ucx_tls", "_ucx_devices")}
    assert all("refused in a dry run: Invalid value" in one.why for one in settings.left_out)


def test_cma_goes_only_where_copies_win_at_every_large_size() -> None:
    assert "UCX_TLS" not in values(settings_for(machine(), ("ucx",), libraries(ucx=UCX), accepts))
    slow = settings_for(machine(cma=4.0), ("ucx",), libraries(ucx=UCX), accepts)
    assert values(slow)["UCX_TLS"] == "^cma"


def test_open_mpi_messaging_and_limits() -> None:
    found = values(settings_for(machine(cma=4.0), ("openmpi",), libraries(openmpi=OPENMPI), accepts))
    assert found["OMPI_MCA_pml"] == "ucx" and found["OMPI_MCA_pml_ucx_tls"] == "any"
    assert found["OMPI_MCA_btl_vader_single_copy_mechanism"] == "none"
    assert int(found["OMPI_MCA_btl_vader_eager_limit"]) > 4096
    fast = values(settings_for(machine(cma=0.1), ("openmpi",), libraries(openmpi=OPENMPI), accepts))
    assert "OMPI_MCA_btl_vader_single_copy_mechanism" not in fast
    assert "OMPI_MCA_btl_vader_eager_limit" not in fast


def test_open_mpi_without_ucx() -> None:
    settings = settings_for(machine(), ("openmpi",), libraries(openmpi={"OMPI_MCA_pml": ""}), accepts)
    assert settings.left_out == (LeftOut("openmpi", "OMPI_MCA_pml", "ucx", "this Open MPI is built without UCX"),)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hse-a", {"UCX_CUDA_IPC_BW": "47700MBs"}),  # 2 of 6 NVLinks to each: 50 GB/s; both NICs alike
        ("hse-c", {"UCX_CUDA_IPC_BW": "47700MBs"}),  # a NIC for each CPU: the far one is no slower
        ("hse-e", {}),  # 12 NVLinks and two rails: what UCX assumes is right
    ],
)
def test_node_types_get_what_their_hardware_demands(name: str, expected: dict[str, str]) -> None:
    settings = settings_for(Machine(read_machine(name)), ("ucx",), unchecked=True)
    assert values(settings) == expected
    assert settings.label.startswith("no profile") and not any(one.measured for one in settings.settings)


def test_damaged_peer_copies_switch_them_off() -> None:
    value = made_up.profile(2)
    path = next(s["path"] for s in value["series"] if s["path"]["source"] == "gpu0")
    value["rejected"] = [
        {"path": {**path, "destination": "gpu1"}, "operation": "latency", "bytes": 8, "reason": "data not intact"}
    ]
    broken = Machine(read_machine("dgx-1v"), made_up.read(value))
    assert values(settings_for(broken, ("nccl",), unchecked=True))["NCCL_P2P_DISABLE"] == "1"
    assert "NCCL_P2P_DISABLE" not in values(settings_for(machine(), ("nccl",), unchecked=True))


def test_rules_of_collectives() -> None:
    allreduce = COLLECTIVES["allreduce"]
    rules = [Rule(allreduce, 2, 65536, 4), Rule(allreduce, 2, 0, 3), Rule(COLLECTIVES["bcast"], 4, 0, 6)]
    numbers = [line.split("#")[0].split() for line in rules_file(rules).splitlines()]
    assert numbers == [
        ["2"],
        *[["2"], ["1"], ["2"], ["2"], ["0", "3", "0", "0"], ["65536", "4", "0", "0"]],
        *[["7"], ["1"], ["4"], ["1"], ["0", "6", "0", "0"]],
    ]


def test_dry_run_of_the_installed_ucx() -> None:
    """With the system's UCX or the wheel's: a good value passes, a bad one and an unknown name do not."""
    jobs = find_job_libraries()
    try:
        jobs.ucx_program("ucx_info")
    except Unknown as reason:  # as on a machine with Debian's Open MPI without ucx-utils
        pytest.skip(str(reason))
    assert refused("ucx", {"UCX_RNDV_THRESH": "64K"}, jobs) == ""
    assert "UCX_NO_SUCH" in refused("ucx", {"UCX_NO_SUCH": "1"}, jobs)
    assert refused("ucx", {"UCX_RNDV_THRESH": "nonsense"}, jobs) != ""


def test_open_mpi_names_of_both_generations() -> None:
    known = {**OPENMPI, "OMPI_MCA_btl_sm_eager_limit": "4096"}
    del known["OMPI_MCA_btl_vader_eager_limit"]
    names = [one.name for one in openmpi.proposed(machine(cma=4.0), known) if isinstance(one, Setting)]
    assert "OMPI_MCA_btl_sm_eager_limit" in names and "OMPI_MCA_btl_vader_eager_limit" not in names
