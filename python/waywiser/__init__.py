"""Measures every path between two memories of a machine and chooses the fastest for each message size."""

from waywiser.crypto_library import select_libcrypto
from waywiser.ucx_library import select_libucp

__version__ = "0.1.0"

# Before the core is loaded: it opens both on first use, by the paths that this leaves in WAYWISER_LIBUCP and so on.
libucp = select_libucp()
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
from waywiser.group import (  # noqa: E402
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
    Window,
    cuda_gpus,
    find_gpus,
    from_mpi4py,
    from_torch,
    join,
    virtual_gpus,
)
from waywiser.halo import (  # noqa: E402
    ComponentsFirst,
    GridPartition,
    HaloExchange,
    HaloField,
    HaloSide,
    HaloVariant,
    MeshPartition,
)
from waywiser.heap import Heap, HeapTeam  # noqa: E402
from waywiser.installed_library import include_path, nvrtc_options  # noqa: E402
from waywiser.offload import CudaKernel, RemoteArray, RemoteEvent, RemoteGpu, RemoteStream, remote  # noqa: E402

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
    "TransferError",
    "UnavailableError",
    "Window",
    "cuda_gpus",
    "find_gpus",
    "from_mpi4py",
    "from_torch",
    "include_path",
    "join",
    "libucp",
    "nvrtc_options",
    "remote",
    "virtual_gpus",
]
