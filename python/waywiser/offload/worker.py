"""The process that serves one client: it alone has the client's arrays, and a fault in it is no other client's."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

import numpy

from waywiser.errors import Error, InputError, UnavailableError
from waywiser.group.gpus import DLPACK_CODES, cuda_gpus, virtual_gpus
from waywiser.group.group import Group
from waywiser.json_fields import Node
from waywiser.offload.functions import Function, functions_of
from waywiser.offload.kernels import load_nvrtc
from waywiser.offload.pair import Meeting, join_pair
from waywiser.offload.peers import Peers

if TYPE_CHECKING:
    from waywiser import _core

_JOINING = 20.0  # seconds for the client to come
_FOR_CLIENTS = (ValueError, TypeError, ArithmeticError, InputError, UnavailableError)  # of functions: with their words
_PATIENCE = 1e7  # seconds for a function: a client that waits no longer goes, and that ends this process


class ServedArray:
    """An array of the client on a CUDA GPU, for libraries that take DLPack."""

    def __init__(self, core: _core.ServedArray) -> None:
        self._core = core

    def __dlpack__(self, **options: Any) -> Any:
        dtype = numpy.dtype(self._core.type)
        view: Any = self._core.view(DLPACK_CODES[dtype.kind], 8 * dtype.itemsize)
        return view.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._core.device)


class Calls:
    """Calls the server's functions for the worker: with NumPy arrays on virtual GPUs, with those of PyTorch or CuPy on
    CUDA's.
    """

    def __init__(self, group: Group, virtual: bool, functions: dict[str, Function]) -> None:
        self._group, self._virtual, self._functions = group, virtual, functions

    def __call__(
        self, name: str, arrays: list[_core.ServedArray], numbers: list[tuple[str, float]]
    ) -> tuple[Any, tuple[int, ...], float]:
        """A contiguous array, its shape, and the seconds of the function itself. Raises what the client may know."""
        try:
            return self._result_of(name, arrays, numbers)
        except BaseException as error:
            words = " ".join(str(error).split())  # one line
            if not isinstance(error, _FOR_CLIENTS):
                traceback.print_exc()  # for the server's log
                words = "the server's log says why"
            raise type(type(error).__name__, (Exception,), {})(words) from None

    def _result_of(
        self, name: str, arrays: list[_core.ServedArray], numbers: list[tuple[str, float]]
    ) -> tuple[Any, tuple[int, ...], float]:
        usable = [_on_host(each) for each in arrays] if self._virtual else self._on_gpu(arrays)
        begun = time.perf_counter()
        result = self._functions[name](*usable, **dict(numbers))
        if not self._virtual:
            self._group.synchronize(result)
        seconds = time.perf_counter() - begun
        if self._virtual:
            result = numpy.asarray(result, order="C")
        return result, tuple(result.shape), seconds

    def _on_gpu(self, arrays: list[_core.ServedArray]) -> list[Any]:
        library = _library_of_arrays()
        return [library.from_dlpack(ServedArray(each)) for each in arrays]


def _on_host(array: _core.ServedArray) -> numpy.ndarray[Any, Any]:
    values = numpy.empty(array.shape, array.type)
    array.read(values)
    return values


def _library_of_arrays() -> Any:
    """PyTorch or CuPy. Raises UnavailableError if neither is installed."""
    for name in ("torch", "cupy"):
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name)
    raise UnavailableError("functions on CUDA GPUs need PyTorch or CuPy, and the server has neither")


class _Server:
    """The socket to the server, which user code and the processes that it starts do not have: see client_process.py."""

    def __init__(self, file: int) -> None:
        self._line = socket.socket(fileno=file)
        self._line.set_inheritable(False)

    def order(self) -> Node:
        text = b""
        while not text.endswith(b"\n"):
            part = self._line.recv(1 << 16)
            if not part:
                os._exit(1)
            text += part
        return Node(json.loads(text), "the server's order")

    def tell(self, **what: Any) -> None:
        self._line.sendall(json.dumps(what).encode() + b"\n")

    def end_with_it(self) -> None:
        """The server says nothing more, and holds the other end until it ends."""
        self._line.recv(1)
        os._exit(1)


def main() -> int:
    """Serves one client, as the server at the socket argv[1] says. The exit code is 0 if the client ended in order."""
    from waywiser import _core

    server = _Server(int(sys.argv[1]))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    order = server.order()
    threading.Thread(target=server.end_with_it, daemon=True).start()
    meeting = Meeting(order.text("job"), order.text("host"), 0, order.text("secret"), order.flag("encrypt"))
    try:
        functions = functions_of(order.text("module", ""))
        virtual, gpu = order.integer("virtual"), order.integer("gpu")
        gpus = virtual_gpus(virtual, order.integer("memory")) if virtual else cuda_gpus()
        with join_pair(meeting, _JOINING, gpus, lambda port: server.tell(port=port)) as group:
            group.timeout = _PATIENCE
            calls = Calls(group, virtual > 0, functions)

            def tell(memory: int, requests: int) -> None:
                server.tell(memory=memory, requests=requests)

            builtins_only = order.flag("builtins_only")
            if not virtual and not builtins_only:
                load_nvrtc()
            roads = order.text("host"), order.flag("encrypt"), order.flag("data_plain")
            peers = Peers(order.text("peers"))
            limits = order.integer("memory"), order.integer("most_requests"), order.number("most_seconds")
            allowed = list(functions), builtins_only
            _core.serve_remote_gpu(group._core, gpus._core, gpu, roads, peers.admit, limits, *allowed, calls, tell)
    except Error as error:
        server.tell(ended=f"{type(error).__name__}: {error}")
        return 1
    server.tell(ended="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
