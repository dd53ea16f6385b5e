"""Ranks that talk to each other: `group = waywiser.join()` in a program that mpirun, srun, torchrun or `waywiser run`
starts.

Arrays are NumPy arrays, PyTorch tensors, CuPy arrays, `waywiser.GpuArray`, and anything else with the buffer protocol,
DLPack or `__cuda_array_interface__`: in host memory or in that of a GPU. They must be contiguous, but for those of
`prepare_exchange`; types are float64,
float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8 to int64, uint8 to uint64, bool, complex64 and complex128;
NumPy has bfloat16 and float8 by ml_dtypes.

`stream`: the CUDA stream that GPU arrays are used in, as an integer or as an object of PyTorch, CuPy or cuda.core. Left
out, it is the current one of PyTorch or CuPy for their arrays; of other libraries' arrays it is what their interface
says.
"""

from waywiser.group.future import Future, wait_all, wait_any
from waywiser.group.gpus import GpuArray, Gpus, GpuStream, cuda_gpus, find_gpus, virtual_gpus
from waywiser.group.group import Group
from waywiser.group.joining import from_mpi4py, from_torch, from_unique_id, join, unique_id
from waywiser.group.message_status import ANY_SOURCE, ANY_TAG, MessageStatus, TakenMessage
from waywiser.group.null_rank import PROC_NULL
from waywiser.group.prepared import Exchange, Indexed, Prepared
from waywiser.group.types import Array, ElementName, ElementType, OnFailure, ReduceOp, Stream
from waywiser.group.windows import Window

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "PROC_NULL",
    "Array",
    "ElementName",
    "ElementType",
    "Exchange",
    "Future",
    "GpuArray",
    "GpuStream",
    "Gpus",
    "Group",
    "Indexed",
    "MessageStatus",
    "OnFailure",
    "Prepared",
    "ReduceOp",
    "Stream",
    "TakenMessage",
    "Window",
    "cuda_gpus",
    "find_gpus",
    "from_mpi4py",
    "from_torch",
    "from_unique_id",
    "join",
    "unique_id",
    "virtual_gpus",
    "wait_all",
    "wait_any",
]
