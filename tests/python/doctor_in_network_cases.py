"""D53 to D55: made-up machines whose network adds, whose card matches tags, or of an unusual kind, and others."""

from __future__ import annotations

from doctor_machines import IPV4, Files, link, nic, roce
from doctor_parts import ABSENT, OK, PROBLEM, UNKNOWN, WARNING, Case

SAQUERY = "saquery -C mlx5_0 -P 1 SR"
RECORD = "ServiceRecord dump:\n\t\tServiceName.............{}\n\t\tServiceLease............Infinite\n"
SERVED = {SAQUERY: RECORD.format("SHArP.AggregationManager")}
NOT_SERVED = {SAQUERY: RECORD.format("Another.Service")}
PLUG_IN = {"/opt/hpcx/lib/libnccl-net.so.0": b"\x7fELF..ncclNetPlugin_v8.ncclCollNetPlugin_v8."}
WITHOUT = {"/opt/hpcx/lib/libnccl-net.so.0": b"\x7fELF..ncclNetPlugin_v8."}
UCC = {"/opt/hpcx/lib/libucc.so.1": "", "/opt/hpcx/lib/ucc/libucc_tl_sharp.so": ""}
PATH = {"LD_LIBRARY_PATH": "/opt/hpcx/lib"}
ASKED = {**PATH, "NCCL_COLLNET_ENABLE": "1"}
LOGGED = {**ASKED, "NCCL_DEBUG_FILE": "/tmp/nccl.log"}
BY_UCC = {**PATH, "UCC_CL_BASIC_TLS": "ucp,sharp"}
LINE = "n1:7:9 [0] NCCL INFO "
TAKEN = (
    LINE
    + "CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA\n"
    + LINE
    + "CollNet 01/0 : 0 [send] via COLLNET/SHARP/1\n"
)
RAN = LINE + "AllReduce: 8388608 Bytes -> Algo {} proto {}\n"
BY_RINGS = RAN.format("RING", "SIMPLE channel{Lo..Hi}={0..7}")
RINGS = LINE + "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
TOO_FEW = RINGS + LINE + "Communicator has 1 nodes which is less than CollNet node threshold 2, disabling CollNet\n"
DEVINFO = "hca_id:\t{}\n\ttransport:\t\t\tInfiniBand (0)\n{}\n\t\tport:\t1\n"
TAGS = "\tmax_rndv_hdr_size:\t\t64\n\tmax_num_tags:\t\t\t127\n\tmax_ops:\t\t\t32768\n\tflags:\n\t\t\t\t\tIBV_TM_CAP_RC"
EAGER = TAGS.partition("\n\t\t\t\t\tIBV")[0]
NO_TAGS = "\ttag matching not supported"
VERBOSE = "ibv_devinfo -v"
MATCHES = {"UCX_RC_MLX5_TM_ENABLE": "y"}

DEVICE = "/sys/class/infiniband/mlx5_0"
RNIC = {f"{DEVICE}/node_type": "4: RNIC"}
ETHERNET = {"/sys/class/net/eth0/operstate": "up", "/sys/class/net/eth0/type": "1"}
IPOIB = {"/sys/class/net/ib0/operstate": "up", "/sys/class/net/ib0/type": "32"}
DOWN = {"/sys/class/net/eth1/operstate": "down", "/sys/class/net/eth1/type": "1"}
LOOP = {"/sys/class/net/lo/operstate": "unknown", "/sys/class/net/lo/type": "772"}
CXI = {"/sys/class/cxi/cxi0/device": "", **ETHERNET}


def efa() -> Files:
    """An EFA: its driver, and a port of no link layer that we know."""
    found = nic(layer="Unspecified")
    _, folder = found[f"{DEVICE}/device"]
    return found | {f"{folder}/driver": link("/sys/bus/pci/drivers/efa")}


IN_NETWORK_CASES = [
    Case("D53", ABSENT, "no active InfiniBand port", roce({3: (IPV4, "RoCE v2")}), environment=ASKED),
    Case("D53", ABSENT, "neither NCCL nor UCC has a plug-in", nic(), SERVED),
    Case("D53", ABSENT, "no sharp_am serves mlx5_0:1", nic() | PLUG_IN, NOT_SERVED, PATH),
    Case("D53", OK, "the plug-in of NCCL is there; nothing asks for it", nic() | PLUG_IN, SERVED, PATH),
    Case("D53", OK, "the plug-in of NCCL, UCC is there", nic() | PLUG_IN | UCC, SERVED, PATH),
    Case("D53", OK, "2 connections via COLLNET/SHARP", nic() | PLUG_IN | {"/tmp/nccl.log": TAKEN}, SERVED, LOGGED),
    *(
        Case("D53", status, text, nic() | PLUG_IN | {"/tmp/nccl.log": TAKEN + ran}, SERVED, LOGGED)
        for status, text, ran in (
            (OK, "for 1 of 3 all-reduces", 2 * BY_RINGS + RAN.format("COLLNET_CHAIN", "SIMPLE channel{Lo..Hi}={0..1}")),
            (OK, "for 1 of 1 all-reduces", RAN.format(3, "2 time 91.2")),
            (WARNING, "none of 2 all-reduces ran by it", 2 * BY_RINGS),
        )
    ),
    Case("D53", WARNING, "no connection via COLLNET", nic() | PLUG_IN | {"/tmp/nccl.log": RINGS}, SERVED, LOGGED),
    Case("D53", WARNING, "has 1 nodes which is less", nic() | PLUG_IN | {"/tmp/nccl.log": TOO_FEW}, SERVED, LOGGED),
    Case("D53", UNKNOWN, "needs a log of NCCL", nic() | PLUG_IN | {"/tmp/nccl.log": "another"}, SERVED, LOGGED),
    Case("D53", UNKNOWN, "NCCL_DEBUG_FILE=/tmp/nccl.log", nic() | PLUG_IN, SERVED, ASKED),
    Case("D53", UNKNOWN, "NCCL_DEBUG_FILE=", nic() | PLUG_IN, SERVED, {**ASKED, "NCCL_DEBUG_FILE": "/tmp/%h.log"}),
    Case("D53", PROBLEM, "no libnccl-net with CollNet", nic(), SERVED, ASKED),
    Case("D53", PROBLEM, "no libnccl-net with CollNet", nic() | WITHOUT, SERVED, ASKED),
    Case("D53", PROBLEM, "no sharp_am serves mlx5_0:1", nic() | PLUG_IN, NOT_SERVED, ASKED),
    Case("D53", PROBLEM, "loads no plug-in", nic() | PLUG_IN, SERVED, {**ASKED, "NCCL_NET_PLUGIN": "none"}),
    Case("D53", PROBLEM, "no libucc_tl_sharp.so", nic() | PLUG_IN, SERVED, BY_UCC),
    Case("D53", PROBLEM, "UCC_CL_BASIC_TLS asks for it", nic() | UCC, NOT_SERVED, BY_UCC),
    Case("D53", OK, "nothing asks for it", nic() | UCC, SERVED, {**PATH, "UCC_CL_BASIC_TLS": "^nccl,sharp"}),
    Case("D53", UNKNOWN, "UCC's own log", nic() | UCC, SERVED, BY_UCC),
    Case("D53", UNKNOWN, "saquery", nic() | PLUG_IN, {}, ASKED),
    Case("D54", ABSENT, "no RDMA device"),
    Case("D54", ABSENT, "no card here matches tags", nic(), {VERBOSE: DEVINFO.format("mlx5_0", NO_TAGS)}),
    Case("D54", OK, "mlx5_0 up to 127 tags; off", nic(), {VERBOSE: DEVINFO.format("mlx5_0", TAGS)}),
    Case("D54", OK, "on by UCX_RC_MLX5_TM_ENABLE", nic(), {VERBOSE: DEVINFO.format("mlx5_0", TAGS)}, MATCHES),
    Case("D54", PROBLEM, "no card here", nic(), {VERBOSE: DEVINFO.format("mlx5_0", NO_TAGS)}, MATCHES),
    Case("D54", PROBLEM, "no card here", nic(), {VERBOSE: DEVINFO.format("mlx5_0", EAGER)}, MATCHES),
    Case("D54", UNKNOWN, "does not name it", nic(), {VERBOSE: DEVINFO.format("mlx5_0", "")}),
    Case("D54", UNKNOWN, "ibv_devinfo", nic()),
    Case("D55", ABSENT, "no network is up", DOWN | LOOP),
    Case("D55", ABSENT, "no network is up", nic(state="1: DOWN")),
    Case("D55", OK, "eth0 TCP over Ethernet", ETHERNET | DOWN | LOOP),
    Case("D55", OK, "mlx5_0:1 InfiniBand, ib0 IP over InfiniBand", nic() | IPOIB),
    Case("D55", OK, "mlx5_0:1 RoCE v2", roce({3: (IPV4, "RoCE v2"), 2: (IPV4, "IB/RoCE v1")})),
    Case("D55", WARNING, "RoCE v1: no router forwards", roce({2: (IPV4, "IB/RoCE v1")})),
    Case("D55", WARNING, "iWARP: UCX has no transport on it; our groups use TCP", nic(layer="Ethernet") | RNIC),
    Case("D55", WARNING, "mlx5_0:1 EFA: EFA: no mechanism of ours", efa()),
    Case("D55", WARNING, "cxi0 Slingshot, eth0 TCP over Ethernet: Slingshot: UCX has no", CXI),
]
