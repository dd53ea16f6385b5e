"""Measures every path between two memories of a machine and chooses the fastest for each message size."""

import importlib
from typing import TYPE_CHECKING

from waywiser.crypto_library import select_libcrypto
from waywiser.ucx_library import LibucpChoice, find_libucp, name_wheel

__version__ = "0.1.0"

# Before the core is loaded: it opens both on first use, by what this leaves in WAYWISER_LIBUCX and so on.
name_wheel()
select_libcrypto()

from waywiser.errors import (  # noqa: E402
    CorruptionError,
    DeadlineError,
    DeviceError,
    Error,
    InputError,
    InputTypeError,
    InterruptionError,
    TransferError,
    UnavailableError,
)
from waywiser.installed_library import include_path, nvrtc_options  # noqa: E402

# What programs use is loaded when its first name is: the command line does without it.
if TYPE_CHECKING:
    libucp: LibucpChoice
    from waywiser.group import (
        ANY_SOURCE,
        ANY_TAG,
        PROC_NULL,
        Array,
        ElementName,
        ElementType,
        Exchange,
        Future,
        GpuArray,
        Gpus,
        GpuStream,
        Group,
        Indexed,
        MessageStatus,
        OnFailure,
        Prepared,
        ReduceOp,
        Stream,
        TakenMessage,
        Window,
        cuda_gpus,
        find_gpus,
        from_mpi4py,
        from_torch,
        from_unique_id,
        join,
        unique_id,
        virtual_gpus,
        wait_all,
        wait_any,
    )
    from waywiser.halo import (
        ComponentsFirst,
        GridPartition,
        HaloExchange,
        HaloField,
        HaloSide,
        HaloVariant,
        MeshPartition,
    )
    from waywiser.heap import Heap, HeapTeam
    from waywiser.offload import CudaKernel, RemoteArray, RemoteEvent, RemoteGpu, RemoteStream, remote
    from waywiser.storage import File

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "PROC_NULL",
    "Array",
    "ComponentsFirst",
    "CorruptionError",
    "CudaKernel",
    "DeadlineError",
    "DeviceError",
    "ElementName",
    "ElementType",
    "Error",
    "Exchange",
    "File",
    "Future",
    "GpuArray",
    "GpuStream",
    "Gpus",
    "GridPartition",
    "Group",
    "HaloExchange",
    "HaloField",
    "HaloSide",
    "HaloVariant",
    "Heap",
    "HeapTeam",
    "Indexed",
    "InputError",
    "InputTypeError",
    "InterruptionError",
    "MeshPartition",
    "MessageStatus",
    "OnFailure",
    "Prepared",
    "ReduceOp",
    "RemoteArray",
    "RemoteEvent",
    "RemoteGpu",
    "RemoteStream",
    "Stream",
    "TakenMessage",
    "TransferError",
    "UnavailableError",
    "Window",
    "cuda_gpus",
    "find_gpus",
    "from_mpi4py",
    "from_torch",
    "from_unique_id",
    "include_path",
    "join",
    "libucp",
    "nvrtc_options",
    "remote",
    "unique_id",
    "virtual_gpus",
    "wait_all",
    "wait_any",
]

_ROOMS = ("group", "halo", "heap", "offload", "storage")

if not TYPE_CHECKING:  # else every name would be right for type checkers

    def __getattr__(name: str) -> object:
        if name == "libucp":  # which the core chooses
            return find_libucp()
        if name in _ROOMS:
            return importlib.import_module(f"waywiser.{name}")
        if name in __all__:
            for room in _ROOMS:
                found = vars(importlib.import_module(f"waywiser.{room}"))
                if name in found:
                    globals()[name] = found[name]
                    return found[name]
        raise AttributeError(f"module 'waywiser' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_ROOMS})
