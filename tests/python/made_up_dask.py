"""A small double of what `waywiser.dask_backend.comm` takes from dask, distributed and tornado, over asyncio."""

from __future__ import annotations

import asyncio
import pickle
from types import ModuleType
from typing import Any


class StreamClosedError(OSError):
    pass


class CommClosedError(OSError):
    pass


class Stream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read_bytes(self, count: int) -> bytes:
        try:
            return await self._reader.readexactly(count)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise StreamClosedError(str(error)) from error

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


class Comm:
    def __init__(self, stream: Any, local_addr: str, peer_addr: str, deserialize: bool = True) -> None:
        self.stream, self.local_address, self.peer_address = stream, local_addr, peer_addr
        self.deserialize, self.allow_offload = deserialize, True
        self.local_info: dict[str, Any] = {}
        self.remote_info: dict[str, Any] = {}
        self.handshake_options: dict[str, Any] = {}

    @property
    def same_host(self) -> bool:
        return True

    async def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self.stream is not None:
            self.stream.close()
        self.stream = None

    def closed(self) -> bool:
        return self.stream is None


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port or 0)


class Connector:
    prefix = ""
    comm_class = Comm

    async def connect(self, address: str, deserialize: bool = True) -> Comm:
        stream = Stream(*await asyncio.open_connection(*_place(address)))
        return self.comm_class(stream, self.prefix + "127.0.0.1:1", self.prefix + address, deserialize)


class Listener:
    prefix = ""
    comm_class = Comm

    def __init__(self, address: str, comm_handler: Any, deserialize: bool = True) -> None:
        self._address, self._handler, self._deserialize = address, comm_handler, deserialize

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._take, *_place(self._address))

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        comm = self.comm_class(Stream(reader, writer), self.contact_address, self.prefix + "127.0.0.1:1")
        await self._handler(comm)

    @property
    def contact_address(self) -> str:
        host, port = self._server.sockets[0].getsockname()
        return f"{self.prefix}{host}:{port}"

    def stop(self) -> None:
        self._server.close()


class Backend:
    _connector_class: Any = Connector
    _listener_class: Any = Listener

    def get_connector(self) -> Any:
        return self._connector_class()

    def get_listener(self, loc: str, handle_comm: Any, deserialize: bool) -> Any:
        return self._listener_class(loc, handle_comm, deserialize)


def convert_stream_closed_error(comm: object, error: Exception) -> None:
    raise CommClosedError(f"in {comm}: {error}") from error


async def read_bytes_rw(stream: Stream, count: int) -> memoryview:
    return memoryview(bytearray(await stream.read_bytes(count)))


async def to_frames(msg: Any, frame_split_size: int, **_: Any) -> list[Any]:
    buffers: list[pickle.PickleBuffer] = []
    first = pickle.dumps(msg, protocol=5, buffer_callback=buffers.append)
    return [first, *(each.raw() for each in buffers)]


async def from_frames(frames: list[Any], **_: Any) -> Any:
    return pickle.loads(frames[0], buffers=frames[1:])


def modules() -> dict[str, ModuleType]:
    """By the names under which they are imported."""
    names: dict[str, dict[str, Any]] = {
        "dask": {"config": {"distributed.comm.timeouts.tcp": "30s"}},
        "dask.utils": {"parse_bytes": int, "parse_timedelta": lambda text, default: float(text.removesuffix("s"))},
        "distributed": {},
        "distributed.comm": {},
        "distributed.comm.core": {"CommClosedError": CommClosedError},
        "distributed.comm.tcp": {
            "TCP": Comm, "BaseTCPBackend": Backend, "TCPConnector": Connector, "TCPListener": Listener,
            "convert_stream_closed_error": convert_stream_closed_error, "read_bytes_rw": read_bytes_rw,
        },
        "distributed.comm.utils": {"from_frames": from_frames, "to_frames": to_frames},
        "distributed.utils": {"ensure_memoryview": memoryview, "nbytes": lambda frame: memoryview(frame).nbytes},
        "tornado": {},
        "tornado.iostream": {"StreamClosedError": StreamClosedError},
    }  # fmt: skip
    made = {}
    for name, members in names.items():
        made[name] = ModuleType(name)
        for member, value in members.items():
            setattr(made[name], member, value)
    return made
