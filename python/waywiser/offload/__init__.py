"""GPUs of other machines: `waywiser serve` offers them, `waywiser.remote` uses them."""

from waywiser.offload.client import RemoteArray, RemoteGpu, remote

__all__ = ["RemoteArray", "RemoteGpu", "remote"]
