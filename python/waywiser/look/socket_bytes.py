"""What the kernel has counted of each TCP connection, by sock_diag(7): a question, which changes nothing."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

_SOCK_DIAG, _BY_FAMILY, _DUMP, _DONE, _ERROR = 4, 20, 0x301, 3, 2
_ESTABLISHED, _TCP, _INFO = 1 << 1, 6, 2
_HEAD, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
_INODE_AT, _ATTRIBUTES_AT = 68, 72  # in inet_diag_msg
_ACKED_AT = 120  # tcpi_bytes_acked in tcp_info; tcpi_bytes_received follows (Linux 4.1)
_SECONDS = 5.0


def sockets() -> dict[str, Any]:
    """[socket's number, bytes sent and confirmed, bytes received] of each established TCP connection."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as line:
            line.settimeout(_SECONDS)
            rows = [row for family in (socket.AF_INET, socket.AF_INET6) for row in _ask(line, family)]
    except (OSError, struct.error) as error:
        return {"error": f"sock_diag: {error}"}
    return {"tcp": rows}


def _ask(line: socket.socket, family: int) -> Iterator[list[int]]:
    question = struct.pack("=BBBxI48x", family, _TCP, 1 << (_INFO - 1), _ESTABLISHED)
    line.send(_HEAD.pack(_HEAD.size + len(question), _BY_FAMILY, _DUMP, family, 0) + question)
    while True:
        data = line.recv(1 << 18)
        while len(data) >= _HEAD.size:
            length, kind, _, _, _ = _HEAD.unpack_from(data)
            if kind == _DONE:
                return
            if kind == _ERROR:
                code = struct.unpack_from("=i", data, _HEAD.size)[0]
                raise OSError(-code, "the kernel does not answer")
            if counted := _counted(data[_HEAD.size : length]):
                yield counted
            data = data[(max(length, _HEAD.size) + 3) & ~3 :]


def _counted(message: bytes) -> list[int] | None:
    inode = struct.unpack_from("=I", message, _INODE_AT)[0]
    rest = message[_ATTRIBUTES_AT:]
    while len(rest) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(rest)
        if kind == _INFO and length >= _ATTRIBUTE.size + _ACKED_AT + 16:
            return [inode, *struct.unpack_from("=QQ", rest, _ATTRIBUTE.size + _ACKED_AT)]
        rest = rest[(max(length, _ATTRIBUTE.size) + 3) & ~3 :]
    return None
