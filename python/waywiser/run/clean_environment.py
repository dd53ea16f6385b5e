"""The environment for ranks that nothing around this program steers."""

from __future__ import annotations

from collections.abc import Mapping

STEERING = ("UCX_", "UCC_", "OMPI_MCA_", "NCCL_", "MPIR_CVAR_")
# Variables that a machine or its network needs to work at all, independent of speed: NVLink multicast switched off, the
# RoCE address, how nodes are reached.
KEPT = ("NCCL_NVLS_ENABLE", "NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX", "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_ssh_agent")


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without variables that steer the libraries or describe a job around this program."""
    drop = (*STEERING, "OMPI_COMM_", "PMIX_", "PMI_", "ORTE_")
    return {name: value for name, value in environment.items() if name in KEPT or not name.startswith(drop)}
