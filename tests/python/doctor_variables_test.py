"""D34: every variable that takes a fast path away, by values as the libraries read them; what is not known is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctor_machines import BRIDGE1, GPU1, build, gpu, nic
from doctor_parts import UCX, UCX_C

from waywiser.doctor.check import looked
from waywiser.doctor.checks import CHECKS
from waywiser.doctor.fast_paths import SWITCHES
from waywiser.look.finding import Finding

D34 = next(check for check in CHECKS if check.id == "D34")
FAST = gpu() | gpu(GPU1, BRIDGE1) | nic() | {"/dev/gdrdrv": "", "/sys/class/net/eth0/operstate": "up"}
KNOWN = {**UCX, "ucx_info -c": UCX_C + "".join(f"{one.name}=x\n" for one in SWITCHES if one.name.startswith("UCX_"))}
LEVEL = (("LOC", "0"), ("PIX", "SYS", "NVL", "4"))
ONE, ON, ZERO = (("1", "01"), ("0", "2")), (("1", "2", "-1"), ("0",)), (("0",), ("1", "2"))
YES_OR_NO = (("n", "NO", "off", "0"), ("y", "try", "1"))
STEP = (("none",), ("cma", "knem"))
# Variable -> values that take the path away, and others.
VALUES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"), ONE),
    **dict.fromkeys(("NCCL_P2P_DIRECT_DISABLE", "NCCL_IB_DISABLE", "NCCL_NVB_DISABLE", "NCCL_PXN_DISABLE"), ON),
    **dict.fromkeys(("NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"), LEVEL),
    "NCCL_NET": (("Socket", "socket"), ("IB", "AWS Libfabric")),
    "NCCL_NET_PLUGIN": (("none",), ("ofi",)),
    "NCCL_PROTO": (("Simple", "simple"), ("LL,Simple", "^LL128")),
    "UCX_RNDV_SCHEME": (("am",), ("auto", "get_zcopy")),
    "OMPI_MCA_accelerator": (("null", "^cuda", "^rocm,cuda"), ("cuda", "^rocm")),
    "OMPI_MCA_btl_vader_single_copy_mechanism": STEP,
    "OMPI_MCA_btl_sm_single_copy_mechanism": STEP,
    "OMPI_MCA_smsc": (("^cma", "^xpmem,cma"), ("cma",)),
    "OMPI_MCA_coll": (("^tuned", "^hcoll,cuda"), ("^monitoring",)),
    "OMPI_MCA_hwloc_base_binding_policy": (("none",), ("core",)),
}
VALUES |= {one.name: ZERO for one in SWITCHES if one.name not in VALUES and one.name.startswith("NCCL_")}
VALUES |= {one.name: YES_OR_NO for one in SWITCHES if one.name not in VALUES}
CASES = [(one, VALUES[one.name]) for one in SWITCHES]


def asked(folder: Path, **variables: str) -> Finding:
    folder.mkdir()
    return looked(D34, build(folder, FAST, KNOWN, variables))


@pytest.mark.parametrize(("switch", "values"), CASES, ids=lambda one: getattr(one, "name", ""))
def test_each_row(switch: object, values: tuple[tuple[str, ...], tuple[str, ...]], tmp_path: Path) -> None:
    name, what = switch.name, switch.what  # type: ignore[attr-defined]
    for number, value in enumerate(values[0]):
        found = asked(tmp_path / f"off{number}", **{name: value})
        assert (found.status.value, found.text) == ("warning", f"{name}={value} switches off {what}")
    for number, value in enumerate(values[1]):
        found = asked(tmp_path / f"on{number}", **{name: value})
        assert (found.status.value, found.text) == ("ok", f"known and harmless: {name}={value}")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("NCCL_NET_GDR_LEVEL", "loc", "is no distance that NCCL knows"),
        ("NCCL_NET_GDR_LEVEL", "NODE", "is no distance that NCCL knows"),
        ("NCCL_P2P_LEVEL", "pix", "it takes its default"),
        ("UCX_TLS", "^cuda_ipc", "switches off peer access between GPUs"),
        ("UCX_TLS", "^gdr_copy", "switches off GDRCopy"),
        ("UCX_TLS", "^ib", "switches off RDMA"),
        ("UCX_TLS", "^rc,dc,ud", "switches off RDMA"),
        ("UCX_TLS", "^sm", "switches off shared memory"),
        ("UCX_TLS", "sm,cuda_copy,cuda_ipc,gdr_copy", "UCX_TLS=sm,cuda_copy,cuda_ipc,gdr_copy switches off RDMA"),
        ("UCX_TLS", "rc,sm,cuda_copy,gdr_copy", "switches off peer access between GPUs"),
        ("UCX_TLS", "rc,sm,cuda_copy,cuda_ipc", "switches off GDRCopy"),
        ("UCX_NET_DEVICES", "eth0", "UCX_NET_DEVICES=eth0 switches off RDMA"),
        ("OMPI_MCA_pml", "ob1", "switches off UCX"),
        ("OMPI_MCA_pml", "^ucx", "switches off UCX"),
    ],
)
def test_lists_and_words(name: str, value: str, words: str, tmp_path: Path) -> None:
    found = asked(tmp_path / "node", **{name: value})
    assert found.status.value == "warning" and words in found.text, found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("UCX_TLS", "rc,sm,cuda"),
        ("UCX_TLS", "\\rc_x,sm,cuda_copy,cuda_ipc,gdr_copy"),
        ("UCX_TLS", "^tcp"),
        ("UCX_NET_DEVICES", "eth0,mlx5_0:1"),
        ("OMPI_MCA_pml", "ucx"),
        ("OMPI_MCA_pml", "^cm"),
    ],
)
def test_lists_that_leave_every_fast_path(name: str, value: str, tmp_path: Path) -> None:
    assert asked(tmp_path / "node", **{name: value}).status.value == "ok"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_ALGO", "Ring"),
        ("NCCL_BUFFSIZE", "1024"),
        ("NCCL_BRAND_NEW", "1"),
        ("UCX_TLS", "^rc_verbs"),
        ("OMPI_MCA_osc", "rdma"),
    ],
)
def test_what_is_not_known_is_said_to_be_unknown(name: str, value: str, tmp_path: Path) -> None:
    found = asked(tmp_path / "node", **{name: value, "NCCL_DEBUG": "WARN"})
    assert found.status.value == "unknown" and f"not known here what it does to speed: {name}={value};" in found.text
    assert asked(tmp_path / "slow", **{name: value, "NCCL_IB_DISABLE": "1"}).status.value == "warning"


def test_the_page_lists_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs/doctor.md").read_text()
    for one in SWITCHES:
        assert f"`{one.name}`" in page and f"| {one.what} |" in page, one.name
