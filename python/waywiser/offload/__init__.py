"""GPUs of other machines: `waywiser serve` offers them, `waywiser.remote` uses them."""

from waywiser.offload.arrays import RemoteArray
from waywiser.offload.client import RemoteGpu
from waywiser.offload.connect import remote
from waywiser.offload.kernels import CudaKernel
from waywiser.offload.streams import RemoteEvent, RemoteStream

__all__ = ["CudaKernel", "RemoteArray", "RemoteEvent", "RemoteGpu", "RemoteStream", "remote"]
