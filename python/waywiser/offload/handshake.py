"""How a client and a server of GPUs prove to each other that they know the key, before anything is parsed.

Every message up to the proofs has a fixed size. A nonce is 32 random bytes; `proof(x)` is the HMAC-SHA256 of the word x
and both nonces, with the key:

    client -> server: MAGIC, client's nonce
    server -> client: server's nonce, proof("server")
    client -> server: proof("client"), then sealed messages

A server that has too many strangers sends LATER to one of them instead, filled up with zeros: a client tries again.

MAGIC has the version of this handshake: a server of another one answers its own MAGIC, filled up with zeros. The
version of all that follows is in the client's first message, and in the server's answer.

A sealed message is its length (4 bytes), its HMAC with a key of this connection, direction and number, and JSON. It can
be read on the way, and not be changed, replayed or added. The client's side is in
src/waywiser/offload/server_connection.cpp.
"""

from __future__ import annotations

import hmac
import json
import secrets
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from waywiser.errors import DeadlineError, InputError, TransferError
from waywiser.json_fields import Node
from waywiser.reception import Talk, give, take

_ANY_MAGIC = b"WAYWISER-GPU-"
MAGIC = _ANY_MAGIC + b"1\r\n"
_NONCE = 32
LATER = (_ANY_MAGIC + b"LATER\r\n").ljust(64, b"\0")
_LONGEST = 1 << 16
SECONDS = 5.0  # for a whole handshake


class Connection:
    """One proved connection; `secret`: hexadecimal digits that only both ends know, for the group that they form."""

    def __init__(self, sock: socket.socket, key: bytes, nonces: bytes) -> None:
        self.sock = sock
        self.secret = _proof(key, b"group", nonces).hex()
        self._seal, self._check = _proof(key, b"to client", nonces), _proof(key, b"to server", nonces)
        self._sent = self._received = 0

    def send(self, message: dict[str, Any], seconds: float = SECONDS) -> None:
        """Sends a sealed message. Raises TransferError, DeadlineError."""
        self.send_bytes(json.dumps(message).encode(), seconds)

    def send_bytes(self, body: bytes, seconds: float = SECONDS) -> None:
        """The same with a message that is encoded already."""
        seal = _mark(self._seal, self._sent, body)
        self._sent += 1
        _send(self.sock, struct.pack("<I", len(body)) + seal + body, time.monotonic() + seconds)

    def receive(self, seconds: float = SECONDS) -> Node:
        """The next sealed message. Raises TransferError, DeadlineError; InputError if the seal is wrong."""
        until = time.monotonic() + seconds
        head = _receive(self.sock, 4 + 32, until)
        (length,) = struct.unpack("<I", head[:4])
        if length > _LONGEST:
            raise InputError("a message that is too long")
        body = _receive(self.sock, length, until)
        if not hmac.compare_digest(_mark(self._check, self._received, body), head[4:]):
            raise InputError("a message was changed on its way")
        self._received += 1
        what = "a message of the server's connection"
        try:
            return Node(json.loads(body), what)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{what}: not valid JSON: {' '.join(str(error).split())}") from None

    def is_open(self) -> bool:
        """Whether the other end has not closed it. Raises nothing."""
        try:
            self.sock.setblocking(False)
            return self.sock.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Raises nothing."""
        self.sock.close()


def greeting(sock: socket.socket, key: Callable[[], bytes]) -> Talk[Connection]:
    """Proves the key to a client, and lets it prove the key. Raises InputError for a stranger, TransferError."""
    hello = yield from take(sock, len(MAGIC) + _NONCE)
    if hello[: len(MAGIC)] != MAGIC:
        yield from _refuse_greeting(sock, hello[: len(MAGIC)])
    mine, known = secrets.token_bytes(_NONCE), key()
    nonces = hello[len(MAGIC) :] + mine
    yield from give(sock, mine + _proof(known, b"server", nonces))
    theirs = yield from take(sock, 32)
    if not hmac.compare_digest(_proof(known, b"client", nonces), theirs):
        raise InputError("a client that does not know the key")
    return Connection(sock, known, nonces)


def greet_as_server(sock: socket.socket, key: bytes) -> Connection:
    """The same with one client only. Raises as greeting, and DeadlineError."""
    until = time.monotonic() + SECONDS
    sock.setblocking(False)
    talk, poll = greeting(sock, lambda: key), select.poll()
    try:
        while True:
            poll.register(sock, next(talk))
            if not poll.poll(max(until - time.monotonic(), 0) * 1000):
                raise DeadlineError("the other end says nothing")
    except StopIteration as end:
        connection: Connection = end.value
        return connection


def _refuse_greeting(sock: socket.socket, greeted: bytes) -> Talk[None]:
    if not greeted.startswith(_ANY_MAGIC):
        raise InputError("it does not greet as a client")
    yield from give(sock, MAGIC.ljust(_NONCE + 32, b"\0"))
    theirs, ours = (text.decode("ascii", "replace").strip() for text in (greeted, MAGIC))
    raise InputError(f"the client greets as {theirs}, this server as {ours}: install the same version at both")


def _proof(key: bytes, word: bytes, nonces: bytes) -> bytes:
    return hmac.digest(key, b"waywiser offload " + word + b"\0" + nonces, "sha256")


def _mark(key: bytes, number: int, body: bytes) -> bytes:
    return hmac.digest(key, struct.pack("<Q", number) + body, "sha256")


def _send(sock: socket.socket, data: bytes, until: float) -> None:
    try:
        sock.settimeout(max(until - time.monotonic(), 0.001))
        sock.sendall(data)
    except TimeoutError:
        raise DeadlineError("the other end takes nothing") from None
    except OSError as error:
        raise TransferError(f"the connection broke: {error.strerror or error}") from error


def _receive(sock: socket.socket, size: int, until: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        left = until - time.monotonic()
        if left <= 0:
            raise DeadlineError("the other end says nothing")
        try:
            sock.settimeout(left)
            part = sock.recv(size - len(data))
        except TimeoutError:
            continue
        except OSError as error:
            raise TransferError(f"the connection broke: {error.strerror or error}") from error
        if not part:
            raise TransferError("the other end has closed the connection")
        data += part
    return bytes(data)
