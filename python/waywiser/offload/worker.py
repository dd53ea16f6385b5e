"""The process that serves one client: it alone has the client's arrays, and a fault in it is no other client's."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
import threading
import time
from typing import Any

import numpy

from waywiser.checked import Node
from waywiser.errors import DeviceError, Error, InputError, UnavailableError
from waywiser.group.gpus import GpuArray, Gpus, cuda_gpus, virtual_gpus
from waywiser.group.group import Group
from waywiser.offload.frames import CLIENT, DATA_TAG, SERVER, receive_frame, send_frame
from waywiser.offload.functions import Function, functions_of
from waywiser.offload.pair import IDLE, Meeting, join_pair

_MOST_ARRAYS = 1_000_000
_JOINING = 20.0  # seconds for the client to come
_BETWEEN_LINES = 0.2  # seconds at least between two lines for the server


class Worker:
    """Carries out the requests of one client, in their order.

    A request that fails is told with the reply of the next one that has a reply, as CUDA tells errors of earlier
    kernels; the ones in between are not carried out. `memory`: the most bytes that the client may have on the GPU.
    """

    def __init__(self, group: Group, gpus: Gpus, gpu: int, functions: dict[str, Function], memory: int) -> None:
        self._group, self._gpus, self._gpu = group, gpus, gpu
        self._functions, self._limit = functions, memory
        self._arrays: dict[int, Any] = {}
        self._failed: dict[str, str] | None = None
        self._seconds = {"input": 0.0, "compute": 0.0, "device": 0.0, "output": 0.0}
        self.used = self.requests = 0
        self._do = {"array": self._take, "run": self._run, "free": self._free, "get": self._give, "sync": self._reply}

    def serve_one(self) -> bool:
        """Waits for a request and carries it out. False: the client has ended. Raises as Group.recv; InputError for
        what is no request: then the stream of requests cannot be followed any further.
        """
        request = receive_frame(self._group, CLIENT)
        what = request.text("do")
        if what == "end":
            return False
        if what not in self._do:
            raise request.refuse(f'"do" is {what!r}')
        self.requests += 1
        self._do[what](request)
        return True

    def _take(self, request: Node) -> None:
        begun = time.perf_counter()
        number, shape, dtype = _number(request), _shape(request), _type(request)
        size = math.prod(shape) * dtype.itemsize
        if size > self._limit:  # its data could not even be put aside
            raise request.refuse(f"an array of {size} bytes, above this server's limit of {self._limit}")
        array: Any = None
        try:
            array = self._room_for(number, shape, dtype, size)
        except Error as error:
            self._fail(f"array {number}", error)
            if request.flag("filled") and size != 0:  # the data are on their way
                self._group.recv(numpy.empty(shape, dtype), CLIENT, DATA_TAG)
            return
        if not request.flag("filled"):
            array.fill(0)  # nobody reads what another client has left
        elif size != 0:
            self._group.recv(array, CLIENT, DATA_TAG)
        self._keep(number, array, size)
        self._seconds["input"] += time.perf_counter() - begun

    def _room_for(self, number: int, shape: tuple[int, ...], dtype: numpy.dtype[Any], size: int) -> GpuArray:
        if self._failed is not None:
            raise InputError("an earlier request has failed")
        if number in self._arrays or len(self._arrays) >= _MOST_ARRAYS:
            raise InputError(f"there is an array {number} already, or there are {_MOST_ARRAYS}")
        if self.used + size > self._limit:
            raise DeviceError(
                f"{size} bytes more than the {self.used} in use are above this server's limit of {self._limit}"
            )
        return self._gpus.empty(shape, dtype, self._gpu)

    def _run(self, request: Node) -> None:
        if self._failed is not None:
            return
        number, name = _number(request), request.text("function")
        begun = time.perf_counter()
        try:
            function = self._functions.get(name)
            if function is None:
                raise InputError(f"this server has no function {name!r}; it has {', '.join(sorted(self._functions))}")
            arrays = [self._array(each.as_number()) for each in request.items("arrays")]
            numbers = {key: request.child("numbers").number(key) for key in request.child("numbers").value}
            result, device = self._call(function, arrays, numbers)
            size = result.size * result.dtype.itemsize
            if self.used + size > self._limit:
                raise DeviceError(f"the result has {size} bytes, above this server's limit of {self._limit}")
            self._keep(
                number, self._gpus.array(result, self._gpu) if isinstance(result, numpy.ndarray) else result, size
            )
        except Error as error:
            self._fail(name, error)
        except Exception as error:  # of a function that is not ours
            self._fail(name, InputError(f"{type(error).__name__}: {' '.join(str(error).split())}"))
        else:
            self._seconds["device"] += device
            self._seconds["compute"] += time.perf_counter() - begun

    def _call(self, function: Function, arrays: list[Any], numbers: dict[str, float]) -> tuple[Any, float]:
        """The result, and the seconds that the function took with arrays that it could use."""
        if self._gpus.backend == "virtual_gpu":
            usable: list[Any] = [each.numpy() for each in arrays]
            begun = time.perf_counter()
            return numpy.asarray(function(*usable, **numbers)), time.perf_counter() - begun
        library = _library_of_arrays()
        usable = [library.from_dlpack(each) if isinstance(each, GpuArray) else each for each in arrays]
        begun = time.perf_counter()
        result = function(*usable, **numbers)
        self._group.synchronize(result)
        return result, time.perf_counter() - begun

    def _free(self, request: Node) -> None:
        number = _number(request)
        if (array := self._arrays.pop(number, None)) is not None:
            self.used -= array.size * array.dtype.itemsize

    def _give(self, request: Node) -> None:
        begun = time.perf_counter()
        array = None
        if self._failed is None:
            try:
                array = self._array(_number(request))
            except Error as error:
                self._fail(f"array {_number(request)}", error)
        more = {} if array is None else {"shape": list(array.shape), "dtype": numpy.dtype(array.dtype).str}
        self._reply(request, **more)
        if array is not None and array.size != 0:
            self._group.send(array, CLIENT, DATA_TAG)
        self._seconds["output"] += time.perf_counter() - begun

    def _reply(self, request: Node, **more: Any) -> None:
        failed, self._failed = self._failed, None
        counts = {"memory": self.used, "requests": self.requests}
        send_frame(self._group, CLIENT, {"failed": failed, "seconds": self._seconds, **counts, **more})

    def _array(self, number: float) -> Any:
        if int(number) not in self._arrays:
            raise InputError(f"there is no array {int(number)}")
        return self._arrays[int(number)]

    def _keep(self, number: int, array: Any, size: int) -> None:
        self._arrays[number] = array
        self.used += size

    def _fail(self, what: str, error: Error) -> None:
        if self._failed is None:
            self._failed = {"kind": error.kind, "text": f"{what}: {error}"}


def _number(request: Node) -> int:
    return request.integer("array", most=(1 << 53) - 1)


def _shape(request: Node) -> tuple[int, ...]:
    shape = tuple(int(each.as_number()) for each in request.items("shape"))
    if len(shape) > 32 or math.prod(shape) > 1 << 48:
        raise request.refuse("a shape that no array has")
    return shape


def _type(request: Node) -> numpy.dtype[Any]:
    try:
        dtype = numpy.dtype(request.text("dtype"))
    except (TypeError, ValueError):
        raise request.refuse("a type that NumPy does not know") from None
    if dtype.hasobject or dtype.itemsize == 0 or dtype.itemsize > 64:
        raise request.refuse("a type that is no number")
    return dtype


def _library_of_arrays() -> Any:
    """PyTorch or CuPy. Raises UnavailableError if neither is installed."""
    for name in ("torch", "cupy"):
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name)
    raise UnavailableError("functions on CUDA GPUs need PyTorch or CuPy, and the server has neither")


def _tell(**what: Any) -> None:
    """A line for the server."""
    print(json.dumps(what), flush=True)


def _end_with_the_server() -> None:
    """The server holds the other end of standard input until it ends."""
    sys.stdin.read()
    os._exit(1)


def main() -> int:
    """Serves one client, as the line on standard input says. The exit code is 0 if the client ended in order."""
    order = Node(json.loads(sys.stdin.readline()), "the server's order")
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    meeting = Meeting(order.text("job"), order.text("host"), 0, order.text("secret"), order.flag("encrypt"))
    try:
        functions = functions_of(order.text("module", ""))
        virtual, gpu = order.integer("virtual"), order.integer("gpu")
        gpus = virtual_gpus(virtual, order.integer("memory")) if virtual else cuda_gpus()
        with join_pair(meeting, SERVER, _JOINING, gpus, lambda port: _tell(port=port)) as group:
            group.timeout = IDLE
            worker = Worker(group, gpus, gpu, functions, order.integer("memory"))
            told_at = 0.0
            while worker.serve_one():
                if time.monotonic() > told_at + _BETWEEN_LINES:
                    _tell(memory=worker.used, requests=worker.requests)
                    told_at = time.monotonic()
            _tell(memory=worker.used, requests=worker.requests)
    except Error as error:
        _tell(ended=f"{type(error).__name__}: {error}")
        return 1
    _tell(ended="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
