"""One machine each that was once called ok without a look, or never ok."""

from __future__ import annotations

from doctor_machines import GPU0, gpu, nic, smi
from doctor_parts import OK, PORT, PROBLEM, UCX, UCX_C, UNKNOWN, WARNING, Case, cliff, spoiled

# One machine each that was once called ok without a look, or never ok.
BUS_ERROR = "[  9.1] {}: PCIe Bus Error: severity={}, type=Data Link Layer, (Transmitter ID)\n"
DELIVERED = "btl_base_warn_component_unused=0\nmtl = ^ofi\nbtl = ^uct,openib,ofi\npml = ^ucx\nosc = ^ucx,pt2pt\n"
STOCK = {"/etc/openmpi/openmpi-mca-params.conf": DELIVERED}
LOOKED = [
    Case("D09", UNKNOWN, "iommu_group", gpu() | {"/sys/class/iommu/dmar0/x": ""}),
    Case(
        "D41",
        PROBLEM,
        "Uncorrected (Fatal)",
        gpu(),
        {**smi(), "dmesg": BUS_ERROR.format("nvidia 0000:17:00.0", "Uncorrected (Fatal)")},
    ),
    Case(
        "D41",
        WARNING,
        "30 corrected",
        gpu(),
        {**smi(), "dmesg": 30 * BUS_ERROR.format("pcieport 0000:16:00.0", "Corrected")},
    ),
    Case("D41", PROBLEM, f"{GPU0} (3)", gpu(aer_dev_fatal="Undefined 0\nTOTAL_ERR_FATAL 3\n"), smi()),
    Case(
        "D41",
        WARNING,
        f"{GPU0} (7)",
        gpu(aer_dev_correctable="RxErr 7\nTOTAL_ERR_COR 7\n"),
        {**smi(), "dmesg": ""},
    ),
    Case("D26", WARNING, "link_downed 12", nic() | {f"{PORT}/counters/link_downed": "12"}),
    Case("D26", WARNING, "link_error_recovery 12", nic() | {f"{PORT}/counters/link_error_recovery": "12"}),
    Case(
        "D26",
        WARNING,
        "symbol_error 65535",
        nic() | {f"{PORT}/counters/symbol_error": "65535", f"{PORT}/hw_counters/out_of_sequence": "0"},
    ),
    Case(
        "D26",
        OK,
        "no significant",
        nic() | {f"{PORT}/counters/link_downed": "1", f"{PORT}/hw_counters/out_of_sequence": "0"},
    ),
    Case("D23", UNKNOWN, "made for PCIe of 512 Gb/s, its ports carry 100", nic(rate="100 Gb/sec (4X EDR)")),
    Case("D34", PROBLEM, "shared memory", environment={"OMPI_MCA_btl": "tcp,self"}),
    Case("D34", PROBLEM, "shared memory", environment={"OMPI_MCA_btl": "^vader"}),
    Case("D34", OK, "OMPI_MCA_btl=vader,self", environment={"OMPI_MCA_btl": "vader,self"}),
    Case("D34", OK, "OMPI_MCA_btl=^openib", environment={"OMPI_MCA_btl": "^openib"}),
    Case("D34", PROBLEM, "do not start", environment={"OMPI_MCA_pml": "cm"}),
    Case("D34", PROBLEM, "no such device here", nic(), UCX, {"UCX_NET_DEVICES": "mlx5_7:1"}),
    Case("D34", OK, "mlx5_0:1", nic(), UCX, {"UCX_NET_DEVICES": "mlx5_0:1"}),
    Case("D34", WARNING, "a line for each message", environment={"NCCL_DEBUG": "TRACE"}),
    Case("D34", WARNING, "NCCL_P2P_DISABLE=1 switches off peer", environment={"NCCL_P2P_DISABLE": "1"}),
    Case("D34", OK, "NCCL_P2P_DISABLE=0", environment={"NCCL_P2P_DISABLE": "0"}),
    Case("D34", WARNING, "shared memory", environment={"NCCL_SHM_DISABLE": "1"}),
    Case("D34", WARNING, "NCCL_NET=Socket switches off RDMA", environment={"NCCL_NET": "Socket", "NCCL_DEBUG": "INFO"}),
    Case("D34", OK, "NCCL_NET_GDR_LEVEL=SYS", environment={"NCCL_NET_GDR_LEVEL": "SYS"}),
    Case(
        "D34",
        WARNING,
        "a line for each message",
        {},
        {**UCX, "ucx_info -c": f"{UCX_C}UCX_LOG_LEVEL=warn\n"},
        {"UCX_LOG_LEVEL": "trace"},
    ),
    Case("D34", OK, "NCCL_DEBUG=INFO", environment={"NCCL_DEBUG": "INFO"}),
    Case(
        "D34",
        PROBLEM,
        "has; no such variable: UCX_TSL; /etc/nccl.conf sets",
        {"/etc/nccl.conf": "NCCL_ALGO=Ring\n"},
        UCX,
        {"UCX_TLS": "tcp", "UCX_TSL": "x"},
    ),
    Case("D34", OK, "OMPI_MCA_pml=^ucx", STOCK),
    Case("D34", WARNING, "OMPI_MCA_pml=^ucx", STOCK | nic()),
    Case("D33", OK, "/usr/lib64/libucp.so.0", {"/usr/lib64/libucp.so.0": "", "/usr/lib64/libucp.so": ""}),
    Case("D19", PROBLEM, "ptrace_scope is 2", {"/proc/sys/kernel/yama/ptrace_scope": "2"}),
    Case("D19", UNKNOWN, "needs a trial on the machine itself"),
    Case("D36", WARNING, "times the time", results=spoiled(cliff)),
]
