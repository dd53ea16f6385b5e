"""A GPU of another machine, as if it were one of this program's: `gpu = waywiser.remote("host:port")`."""

from __future__ import annotations

import math
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from waywiser.errors import InputError
from waywiser.offload.arrays import RemoteArray, checked_type, number
from waywiser.offload.kernels import CudaKernel, arguments_of, lengths_of
from waywiser.offload.pieces import run_in_pieces
from waywiser.offload.streams import RemoteEvent, RemoteStream

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    from waywiser import _core

DataRoad = Literal["direct", "pageable", "pinned", "pipelined"]
DATA_ROADS: tuple[DataRoad, ...] = ("direct", "pageable", "pinned", "pipelined")
POINTS = (
    "client_input", "server_input", "client_compute", "server_compute", "device", "server_output", "client_output",
)  # fmt: skip


class RoadChooser(Protocol):
    """Chooses the road of an array by its direction and size."""

    def best(self, direction: Literal["input", "output"], nbytes: int, plain: bool = False) -> DataRoad: ...


class RemoteGpu:
    """A GPU of another process or machine; only this client uses its arrays.

    `array`, `zeros`, `run`, `launch` and freeing an array do not wait for the server: if a request fails,
    the next call with an answer raises (`get`, `synchronize`, `account`), and the server skips the requests between
    them, in all streams. Calls of the GPU itself are ordered with those of all its streams (`stream`). While the server
    has no room for more, requests wait here for the next call; `flush` sends them. Every call raises TransferError if
    the server has gone, DeadlineError after the timeout; then all its arrays are lost, and `remote` may be called
    again. One thread at a time may use it: a call that meets one of another thread raises InputError.
    """

    def __init__(self, core: _core.RemoteGpu, roads: RoadChooser | None = None) -> None:
        self._core = core
        self._roads = roads
        self._road: DataRoad = "pipelined"  # as the server begins
        self.name = core.name
        self.memory = core.limit
        self._freed: list[int] = []
        self._codes: dict[bytes, int] = {}  # that the server has compiled
        self._closed = False

    @property
    def encrypted_by(self) -> str:
        """ "openssl" or "kernel"; empty within a machine, where nothing is encrypted. Raises nothing."""
        return self._core.encrypted_by

    @property
    def data_encrypted_by(self) -> str:
        """The same of the bytes of arrays: empty also with `data_plain`. Raises nothing."""
        return self._core.data_encrypted_by

    @property
    def _plain(self) -> bool:
        return self.encrypted_by != "" and self.data_encrypted_by == ""

    def _check_plain(self, wanted: bool) -> None:
        """Raises InputError if it is wanted and has no meaning."""
        if wanted and not self._plain:
            raise InputError(f"--data-plain: {self.name} is on this machine, where nothing is encrypted")

    def stream(self) -> RemoteStream:
        """A new stream, whose calls run one after the other, and beside those of other streams. A client has at most 64
        at a time, or the next answer raises InputError.
        """
        return RemoteStream(self)

    def event(self) -> RemoteEvent:
        """A new event. A client has at most 10,000 at a time, or the next answer raises InputError."""
        return RemoteEvent(self)

    def _begin(self, stream: int = 0) -> _core.RemoteGpu:
        """The core, for `with`: what follows is in this stream (0: in none), and no other thread's call comes between.
        Frees what nothing refers to any more.
        """
        self._core.begin(stream, [] if self._closed else self._freed)
        return self._core

    def use_road(self, road: DataRoad) -> None:
        """How the server moves the bytes of all arrays from now on; `remote` lists the roads. Raises InputError for an
        unknown one.
        """
        with self._begin() as core:
            core.use_road(road)
            self._roads, self._road = None, road

    def road(self, direction: Literal["input", "output"], nbytes: int) -> DataRoad:
        """The road of an array of so many bytes, to the server or back. Raises nothing."""
        return self._road if self._roads is None else self._roads.best(direction, nbytes, self._plain)

    def _take_road(self, direction: Literal["input", "output"], nbytes: int) -> None:
        wanted = self.road(direction, nbytes)
        if wanted != self._road:
            self._core.use_road(wanted)
            self._road = wanted

    def array(self, values: numpy.typing.ArrayLike) -> RemoteArray:
        """A copy of `values` (NumPy or what it accepts; of its shape and type) on the GPU. Returns when `values` may be
        changed again. Raises InputError for values that are no numbers, DeviceError if they are above the server's
        limit.
        """
        import numpy

        given = numpy.asarray(values, order="C")
        checked = checked_type(given.dtype)
        with self._begin() as core:
            self._take_road("input", given.nbytes)
            array = core.array(given.astype(checked, copy=False), given.shape)
            return RemoteArray(self, array, given.shape, checked)

    def zeros(self, shape: int | tuple[int, ...], dtype: Any = float) -> RemoteArray:
        """An array of zeros on the GPU. Raises InputError for an unknown type, DeviceError as array."""
        lengths, checked = (shape,) if isinstance(shape, int) else tuple(shape), checked_type(dtype)
        if any(length < 0 for length in lengths):
            raise InputError(f"{lengths!r:.60} is no shape")
        with self._begin() as core:
            return RemoteArray(self, core.zeros(checked.name, lengths), lengths, checked)

    def pinned(self, shape: int | tuple[int, ...], dtype: Any = float) -> numpy.ndarray[Any, Any]:
        """A NumPy array of zeros in memory of this program that is meant for `array` and `RemoteArray.get(out=)`.

        A server on this machine maps it, page-locks it for its GPU, and copies from and into it without any other copy;
        then `array` and `get` wait for that copy. It maps at most as many bytes as the arrays of a client may have. For
        a server elsewhere the memory is page-locked here, as far as the system lets this program (`ulimit -l`).
        `pinned_by` says which. The memory goes with the last array that lies in it, and may outlive the GPU.

        Waits as synchronize. Raises InputError for an unknown type, DeviceError if there is too little memory.
        """
        lengths, checked = (shape,) if isinstance(shape, int) else tuple(shape), checked_type(dtype)
        if any(length < 0 for length in lengths):
            raise InputError(f"{lengths!r:.60} is no shape")
        with self._begin() as core:
            nbytes = math.prod(lengths) * checked.itemsize
            made: Any = core.pinned(max(nbytes, 1))
            return cast("numpy.ndarray[Any, Any]", made[:nbytes].view(checked).reshape(lengths))

    def pinned_by(self, values: numpy.ndarray[Any, Any]) -> Literal["server", "lock", ""]:
        """How the memory is pinned in which an array of NumPy lies: "server", mapped by the server and page-locked for
        its GPU; "lock", page-locked by this program; "" for all other memory. Raises nothing.
        """
        return cast(Literal["server", "lock", ""], self._core.pinned_by(values.ctypes.data))

    def run(self, function: str, *arrays: RemoteArray, **numbers: float) -> RemoteArray:
        """Lets the server run one of its functions on arrays of this GPU, and numbers by name; does not wait.

        Returns the result's array, whose shape and type are known once it is got. Raises InputError for an array of
        another GPU.
        """
        return self._run(0, function, arrays, numbers)

    def _run(
        self, stream: int, function: str, arrays: tuple[RemoteArray, ...], numbers: dict[str, float]
    ) -> RemoteArray:
        for each in arrays:
            if each._gpu is not self:
                raise InputError("an array of another remote GPU: get() it first")
        named = [(name, number(name, value)) for name, value in numbers.items()]
        with self._begin(stream) as core:
            return RemoteArray(self, core.run(function, [each._number for each in arrays], named))

    def run_in_pieces(
        self,
        function: str,
        *values: numpy.typing.ArrayLike,
        out: numpy.ndarray[Any, Any] | None = None,
        piece: int = 32 << 20,
        **numbers: float,
    ) -> numpy.ndarray[Any, Any]:
        """What a function of the server makes of arrays of this program, which may be larger than the GPU's memory:
        pieces of `piece` bytes go there, are computed and come back at the same time, two of them under way. The
        function takes element by element. Returns a new array, or `out`, of the shape of `values`.

        Raises InputError for arrays of unlike shapes, a wrong `out`, and a function that changes the shape; and as get.
        """
        return run_in_pieces(self, function, values, out, piece, numbers)

    def launch(
        self,
        kernel: CudaKernel,
        *arguments: RemoteArray | float | numpy.generic,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        shared: int = 0,
    ) -> None:
        """Runs a CUDA kernel of this program on the server's GPU. Does not wait, except for the first kernel of a code:
        until the server has compiled it.

        `grid` (in blocks) and `block` (in threads, at most 1024): lengths x, y and z; `shared`: bytes of dynamic shared
        memory, at most 49152. A kernel takes arrays of this GPU, which it may change, as pointers, and numbers of NumPy
        by their types, int32, int64, uint32, uint64, float32 or float64; a Python int is an int32, a float a float64.

        Raises InputError for other arguments, and with the compiler's lines if the code does not
        compile; UnavailableError if the GPU is virtual, the server has no NVRTC, or was started with --builtins-only.
        For an unknown kernel, a wrong shape, and arguments that do not fit the kernel's parameters in number or type,
        the next call with an answer raises.
        """
        self._launch(0, kernel, arguments, grid, block, shared)

    def _launch(
        self,
        stream: int,
        kernel: CudaKernel,
        arguments: tuple[RemoteArray | float | numpy.generic, ...],
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        shared: int,
    ) -> None:
        given = arguments_of(self, arguments)
        shape = lengths_of("grid", grid), lengths_of("block", block), shared
        if not 0 <= shared < 1 << 31:
            raise InputError(f"shared={shared!r:.60}: write a number of bytes")
        with self._begin(stream) as core:
            code = self._codes.get(kernel.code)
            if code is None:
                code = self._codes[kernel.code] = core.load_kernels(kernel.code)
            core.launch(code, kernel.name, *shape, given)

    def copy_of(self, array: RemoteArray) -> RemoteArray:
        """A copy on this GPU of an array of another remote GPU, of the same server or another one, of its shape and
        type. It goes between the servers and not through this program, encrypted between machines unless
        `copies_plain`.

        Waits as synchronize on both GPUs, but not for the copy: if it fails, the next calls with an answer raise, on
        both GPUs. This server must reach the other one at the address at which `remote` reached it. Raises
        InputError for an array of this GPU, and as synchronize.
        """
        with self._begin() as core, array._gpu._begin() as other:
            copy = core.copy_of(other, array._number)
            return RemoteArray(self, copy, array.shape, array.dtype)

    def copies_plain(self, other: RemoteGpu) -> bool:
        """Whether copies from `other` go unencrypted between machines: all want `data_plain`. Raises nothing."""
        return self._core.copies_plain(other._core)

    def flush(self) -> None:
        """Sends the requests that are still here. Raises as every call."""
        with self._begin() as core:
            core.flush()

    def synchronize(self) -> None:
        """Waits until all requests have been carried out. Raises as every call, and the error of the first request that
        failed.
        """
        with self._begin() as core:
            core.synchronize()

    def account(self) -> dict[str, float]:
        """The seconds of all requests so far, at seven points: `input`, `compute` and `output` as the client and as the
        server see them, and `device`, the functions themselves. Waits and raises as synchronize.

        Of the client's `compute` the waiting is in the call that waits: in `synchronize`, or in a `get`'s `output`. The
        server's `compute` ends when it finds that all functions are over.
        """
        with self._begin() as core:
            return {point: total for point, (total, _, _) in zip(POINTS, core.times(), strict=True)}

    def close(self) -> None:
        """Gives the arrays back and ends the process at the server. Raises nothing if it has gone already."""
        self._closed = True
        self._core.close()

    def __enter__(self) -> RemoteGpu:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self.close()

    def __repr__(self) -> str:
        return f"<waywiser.RemoteGpu: {self.name}>"

    def _get(
        self, array: int, nbytes: int, stream: int, out: numpy.ndarray[Any, Any] | None
    ) -> numpy.ndarray[Any, Any]:
        import numpy

        with self._begin(stream) as core:
            self._take_road("output", nbytes)
            if out is not None:
                shape = tuple(core.get_into(array, out))
                if shape != out.shape:
                    raise InputError(f"an array of the shape {shape} for room of the shape {out.shape}")
                return out
            values: Any = core.get(array, numpy.empty)
            return cast("numpy.ndarray[Any, Any]", values)
