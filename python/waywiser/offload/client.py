"""A GPU of another machine, as if it were one of this program's: `gpu = waywiser.remote("host:port")`."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from waywiser.checked import Node
from waywiser.errors import BY_KIND, DeviceError, Error, InputError, TransferError
from waywiser.offload.handshake import SECONDS, Connection, greet_as_client
from waywiser.offload.keys import read_key, usual_key_file

if TYPE_CHECKING:
    import numpy
    import numpy.typing

_STARTING = 40.0  # seconds for the server's process to listen


def remote(address: str, *, key: Path | str | None = None, gpu: int = 0, timeout: float = 60) -> RemoteGpu:
    """A GPU of the server at `address` ("host:port"), which `waywiser serve` started there.

    `key`: the file with the key that client and server share; default ~/.config/waywiser/serve.key. `gpu`: which of the
    server's GPUs, from 0. `timeout`: the seconds that a call may take.

    Raises InputError for a wrong key or address, and if the server refuses; TransferError if it cannot be reached,
    DeadlineError.
    """
    connection = _connect(address, key)
    try:
        connection.send({"do": "use", "gpu": gpu})
        answer = _checked(connection.receive(_STARTING), address)
        return RemoteGpu(address, connection, answer, timeout)
    except BaseException:
        connection.close()
        raise


def state_of(address: str, *, key: Path | str | None = None) -> dict[str, Any]:
    """The GPUs and clients of a server: `gpus`, `clients`, `limit` in bytes of a client. Raises as remote."""
    connection = _connect(address, key)
    try:
        connection.send({"do": "list"})
        state: dict[str, Any] = _checked(connection.receive(), address).value
        return state
    finally:
        connection.close()


class RemoteGpu:
    """A GPU of another process or machine; only this client uses its arrays.

    `array`, `zeros`, `run` and freeing an array do not wait for the server: a request that fails is told by the next
    call that has an answer (`get`, `synchronize`, `account`), and the requests between them are not carried out. One
    thread at a time may use it. Every call raises TransferError if the server has gone, DeadlineError after the
    timeout; then all its arrays are lost, and `remote` may be called again.
    """

    def __init__(self, address: str, connection: Connection, answer: Node, timeout: float) -> None:
        from waywiser.offload.frames import CLIENT
        from waywiser.offload.pair import Meeting, join_pair

        self.address = address
        self.name = f"{answer.text('gpu')} of {address}"
        self.memory = answer.integer("memory")
        self._connection = connection
        meeting = Meeting(
            answer.text("job"), answer.text("host"), answer.integer("port", most=65535), connection.secret,
            answer.flag("encrypt"),
        )  # fmt: skip
        with self._told_as("joining"):
            self._group = join_pair(meeting, CLIENT, timeout)
        self._next = 1
        self._freed: list[int] = []
        self._seconds = {"input": 0.0, "compute": 0.0, "output": 0.0}
        self._closed = False

    @property
    def encrypted_by(self) -> str:
        """ "openssl" or "kernel"; empty within a machine, where nothing is encrypted. Raises nothing."""
        return self._group.encrypted_by(0)

    def array(self, values: numpy.typing.ArrayLike) -> RemoteArray:
        """A copy of `values` (NumPy or what it accepts; of its shape and type) on the GPU. Returns when `values` may be
        changed again. Raises InputError for values that are no numbers, DeviceError if they are above the server's
        limit.
        """
        import numpy

        given = numpy.asarray(values, order="C")
        made = self._new(given.shape, given.dtype, filled=True)
        begun = time.perf_counter()
        if given.size != 0:
            self._send(given)
        self._seconds["input"] += time.perf_counter() - begun
        return made

    def zeros(self, shape: int | tuple[int, ...], dtype: Any = float) -> RemoteArray:
        """An array of zeros on the GPU. Raises InputError for a type that is none, DeviceError as array."""
        return self._new((shape,) if isinstance(shape, int) else tuple(shape), dtype, filled=False)

    def run(self, function: str, *arrays: RemoteArray, **numbers: float) -> RemoteArray:
        """Lets the server run one of its functions on arrays of this GPU, and numbers by name; does not wait.

        Returns the result's array, whose shape and type are known once it is got. Raises InputError for an array of
        another GPU.
        """
        for each in arrays:
            if each._gpu is not self:
                raise InputError("an array of another remote GPU: get() it first")
        made = RemoteArray(self, self._number())
        begun = time.perf_counter()
        self._ask(
            do="run", array=made._number, function=function, arrays=[each._number for each in arrays], numbers=numbers
        )
        self._seconds["compute"] += time.perf_counter() - begun
        return made

    def synchronize(self) -> None:
        """Waits until all requests have been carried out. Raises as every call, and the error of the first request that
        failed.
        """
        begun = time.perf_counter()
        self._ask(do="sync")
        self._answer("synchronize")
        self._seconds["compute"] += time.perf_counter() - begun

    def account(self) -> dict[str, float]:
        """The seconds of all requests so far, at seven points: `input`, `compute` and `output` as the client and as the
        server see them, and `device`, the computation itself. Waits and raises as synchronize.

        Of the client's `compute` the waiting is in the call that waits: in `synchronize`, or in a `get`'s `output`.
        """
        self._ask(do="sync")
        seconds = self._answer("account").child("seconds")
        mine = {f"client_{name}": value for name, value in self._seconds.items()}
        return mine | {
            ("device" if name == "device" else f"server_{name}"): seconds.number(name) for name in seconds.value
        }

    def close(self) -> None:
        """Gives the arrays back and ends the process at the server. Raises nothing if it has gone already."""
        if self._closed:
            return
        self._closed = True
        try:
            self._ask(do="end")
            self._group.close()
        except Error:  # it has gone, and with it the arrays
            pass
        finally:
            self._connection.close()

    def __enter__(self) -> RemoteGpu:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self.close()

    def __repr__(self) -> str:
        return f"<waywiser.RemoteGpu: {self.name}>"

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _new(self, shape: tuple[int, ...], dtype: Any, filled: bool) -> RemoteArray:
        import numpy

        try:
            checked = numpy.dtype(dtype)
        except TypeError:
            raise InputError(f"{dtype!r:.60} is no type of numbers") from None
        if checked.kind not in "biufc":
            raise InputError(f"{checked} is no type of numbers that travels to a GPU")
        if (size := math.prod(shape) * checked.itemsize) > self.memory:
            raise DeviceError(f"{self.name}: {size} bytes are above this server's limit of {self.memory}")
        made = RemoteArray(self, self._number(), shape, checked)
        self._ask(do="array", array=made._number, shape=list(shape), dtype=checked.str, filled=filled)
        return made

    def _ask(self, **request: Any) -> None:
        from waywiser.offload.frames import SERVER, send_frame

        if self._closed and request["do"] != "end":
            raise InputError(f"{self.name} is closed")
        with self._told_as(request["do"]):
            while self._freed:
                send_frame(self._group, SERVER, {"do": "free", "array": self._freed.pop()})
            send_frame(self._group, SERVER, request)

    def _send(self, values: numpy.ndarray[Any, Any]) -> None:
        from waywiser.offload.frames import DATA_TAG, SERVER

        with self._told_as("array"):
            self._group.send(values, SERVER, DATA_TAG)

    def _receive(self, into: numpy.ndarray[Any, Any]) -> None:
        from waywiser.offload.frames import DATA_TAG, SERVER

        with self._told_as("get"):
            self._group.recv(into, SERVER, DATA_TAG)

    def _answer(self, call: str) -> Node:
        from waywiser.offload.frames import SERVER, receive_frame

        with self._told_as(call):
            answer = receive_frame(self._group, SERVER)
        if answer.has("failed"):
            failed = answer.child("failed")
            raise BY_KIND.get(failed.text("kind"), DeviceError)(f"{self.name}: {failed.text('text')}")
        return answer

    @contextmanager
    def _told_as(self, call: str) -> Iterator[None]:
        """Errors of the group name the server and the call."""
        try:
            yield
        except Error as error:
            raise type(error)(f"{self.address}, {call}: {error}") from error

    def _get(self, array: RemoteArray) -> numpy.ndarray[Any, Any]:
        import numpy

        begun = time.perf_counter()
        self._ask(do="get", array=array._number)
        answer = self._answer("get")
        shape = tuple(int(each.as_number()) for each in answer.items("shape"))
        values = numpy.empty(shape, numpy.dtype(answer.text("dtype")))
        if values.size != 0:
            self._receive(values)
        self._seconds["output"] += time.perf_counter() - begun
        return values


class RemoteArray:
    """An array on a remote GPU. `numpy.asarray` gets it; it is freed when nothing refers to it any more.

    `shape` and `dtype`: None for a result of `run` that was not got yet.
    """

    def __init__(
        self, gpu: RemoteGpu, number: int, shape: tuple[int, ...] | None = None, dtype: numpy.dtype[Any] | None = None
    ) -> None:
        self._gpu, self._number = gpu, number
        self.shape, self.dtype = shape, dtype

    def get(self) -> numpy.ndarray[Any, Any]:
        """A copy on the host, after all earlier requests. Raises as synchronize."""
        values = self._gpu._get(self)
        self.shape, self.dtype = values.shape, values.dtype
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray[Any, Any]:
        if copy is False:
            raise InputError("an array of a remote GPU is always copied")
        values = self.get()
        return values if dtype is None else values.astype(dtype)

    def __del__(self) -> None:
        self._gpu._freed.append(self._number)  # told before the next request: this may be any thread

    def __repr__(self) -> str:
        return f"<waywiser.RemoteArray: {self.shape} of {self.dtype} on {self._gpu.name}>"


def _connect(address: str, key: Path | str | None) -> Connection:
    secret = read_key(usual_key_file() if key is None else Path(key))
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"{address!r:.80}: write HOST:PORT")
    try:
        sock = socket.create_connection((host.strip("[]"), int(port)), SECONDS)
    except OSError as error:
        raise TransferError(f"no server of GPUs at {address}: {error.strerror or error}") from error
    try:
        return greet_as_client(sock, secret)
    except Error as error:
        sock.close()
        raise type(error)(f"{address}: {error}") from error


def _checked(answer: Node, address: str) -> Node:
    if answer.has("problem"):
        raise InputError(f"{address}: {answer.text('problem')}")
    return answer
