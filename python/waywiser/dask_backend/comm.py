"""Connector, listener and comms of `waywiser://`, on those that distributed has for TCP."""

from __future__ import annotations

import struct
import sys
from typing import Any

import dask
from dask.utils import parse_bytes, parse_timedelta
from distributed.comm.core import CommClosedError
from distributed.comm.tcp import (
    TCP,
    BaseTCPBackend,
    TCPConnector,
    TCPListener,
    convert_stream_closed_error,
    read_bytes_rw,
)
from distributed.comm.utils import from_frames, to_frames
from distributed.utils import ensure_memoryview, nbytes
from tornado.iostream import StreamClosedError

from waywiser.dask_backend.channel import Channel
from waywiser.errors import Error
from waywiser.group.joining import unique_id

# Bytes of a frame that goes through the channel, at least, unless dask's configuration says otherwise: between two
# processes on two busy cores shorter ones were faster over TCP.
LONG, _CONFIGURED = 4 << 20, "distributed.comm.waywiser.long-frame"
_HEAD = struct.Struct("<8sIQ")  # bytes of the channel's id, number of frames; then the id, the frames' sizes
_MAGIC = b"waywiser"
_BY_CHANNEL = 1 << 63  # in a size
_MOST_ID, _MOST_FRAMES, _MOST_BYTES = 4096, 1 << 24, 1 << 44


class WaywiserComm(TCP):  # type: ignore[misc]
    """A connection whose long frames (4 MiB, if not configured otherwise) go through a channel for each direction; the
    others, and what tells of all frames, go over the TCP connection. A channel is made with the first long frame.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._out: Channel | None = None
        self._in: Channel | None = None
        self._long = int(parse_bytes(dask.config.get(_CONFIGURED, LONG)))
        super().__init__(*args, **options)

    async def read(self, deserializers: Any = None) -> Any:
        stream = self.stream
        if stream is None:
            raise CommClosedError()
        try:
            frames = await self._read_frames(stream)
        except StreamClosedError as error:
            self.abort()
            convert_stream_closed_error(self, error)
        except Error as error:
            self.abort()
            raise CommClosedError(f"in {self}: {error}") from error
        except BaseException:  # nobody knows how much of the message was read
            self.abort()
            raise
        try:
            return await from_frames(
                frames, deserialize=self.deserialize, deserializers=deserializers, allow_offload=self.allow_offload
            )
        except EOFError:
            self.abort()
            raise CommClosedError(f"in {self}: a message came truncated") from None

    async def _read_frames(self, stream: Any) -> list[memoryview]:
        magic, id_bytes, count = _HEAD.unpack(await stream.read_bytes(_HEAD.size))
        if magic != _MAGIC or id_bytes > _MOST_ID or count > _MOST_FRAMES:
            raise CommClosedError(f"in {self}: what has come is no message of waywiser://")
        rest = await stream.read_bytes(id_bytes + 8 * count)
        told = struct.unpack_from(f"<{count}Q", rest, id_bytes)
        sizes = [each & ~_BY_CHANNEL for each in told]
        if max(sizes, default=0) > _MOST_BYTES:
            raise CommClosedError(f"in {self}: a frame of {max(sizes)} bytes is announced")
        if id_bytes:
            if self._in is not None:
                self._in.leave()
            self._in = Channel(rest[:id_bytes], 1, _timeout())
        is_long = [bool(each & _BY_CHANNEL) for each in told]
        if any(is_long) and self._in is None:
            raise CommClosedError(f"in {self}: a long frame is announced, and no channel")
        short = memoryview(await read_bytes_rw(stream, sum(s for s, by in zip(sizes, is_long, strict=True) if not by)))
        wanted = [size for size, by in zip(sizes, is_long, strict=True) if by]
        long = await self._in.receive(wanted) if self._in is not None and wanted else []
        frames, at, came = [], 0, iter(long)
        for size, by in zip(sizes, is_long, strict=True):
            frames.append(next(came) if by else short[at : at + size])
            at += 0 if by else size
        return frames

    async def write(self, msg: Any, serializers: Any = None, on_error: str = "message") -> int:
        stream = self.stream
        if stream is None:
            raise CommClosedError()
        context = {"sender": self.local_info, "recipient": self.remote_info, **self.handshake_options}
        made = await to_frames(
            msg, allow_offload=self.allow_offload, serializers=serializers, on_error=on_error, context=context,
            frame_split_size=sys.maxsize,  # long frames need no pieces, which the reader would have to join
        )  # fmt: skip
        frames = [ensure_memoryview(each) for each in made]
        try:
            await self._write_frames(stream, frames)
        except StreamClosedError as error:
            self.abort()
            convert_stream_closed_error(self, error)
        except Error as error:
            self.abort()
            raise CommClosedError(f"in {self}: {error}") from error
        except BaseException:  # nobody knows how much of the message was written
            self.abort()
            raise
        return sum(map(nbytes, frames))

    async def _write_frames(self, stream: Any, frames: list[memoryview]) -> None:
        long = [each for each in frames if each.nbytes >= self._long]
        id = b""
        if long and self._out is None:
            id = unique_id("" if self.same_host else _host_of(self.peer_address))
            self._out = Channel(id, 0, _timeout())
        sizes = [each.nbytes | (_BY_CHANNEL if each.nbytes >= self._long else 0) for each in frames]
        head = _HEAD.pack(_MAGIC, len(id), len(frames)) + id + struct.pack(f"<{len(sizes)}Q", *sizes)
        stream.write(b"".join([head, *(each for each in frames if each.nbytes < self._long)]))
        if long and self._out is not None:
            await self._out.send(long)

    async def close(self) -> None:
        self._leave()
        await super().close()

    def abort(self) -> None:
        self._leave()
        super().abort()

    def _leave(self) -> None:
        for channel in (self._out, self._in):
            if channel is not None:
                channel.leave()
        self._out = self._in = None


def _timeout() -> float:
    return float(parse_timedelta(dask.config.get("distributed.comm.timeouts.tcp"), default="seconds"))


def _host_of(address: str) -> str:
    """ "waywiser://10.0.0.2:4711" -> "10.0.0.2"."""
    return address.partition("://")[2].rpartition(":")[0].strip("[]")


class WaywiserConnector(TCPConnector):  # type: ignore[misc]
    prefix = "waywiser://"
    comm_class = WaywiserComm


class WaywiserListener(TCPListener):  # type: ignore[misc]
    prefix = "waywiser://"
    comm_class = WaywiserComm


class WaywiserBackend(BaseTCPBackend):  # type: ignore[misc]
    """What the entry point `distributed.comm.backends` names."""

    _connector_class = WaywiserConnector
    _listener_class = WaywiserListener
