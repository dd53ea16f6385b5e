"""GPUs of other machines: `waywiser serve` offers them, `waywiser.remote` uses them."""

from waywiser.offload.client import RemoteArray, RemoteGpu, remote
from waywiser.offload.kernels import CudaKernel

__all__ = ["CudaKernel", "RemoteArray", "RemoteGpu", "remote"]
