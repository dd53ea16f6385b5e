"""How a client and a server of GPUs prove to each other that they know the key, before anything is parsed.

Every message up to the proofs has a fixed size. A nonce is 32 random bytes; `proof(x)` is the HMAC-SHA256 of the word x
and both nonces, with the key:

    client -> server: MAGIC, client's nonce
    server -> client: server's nonce, proof("server")
    client -> server: proof("client"), then sealed messages

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
import socket
import struct
import time
from typing import Any, NoReturn

from waywiser.checked import Node
from waywiser.errors import DeadlineError, InputError, TransferError

_ANY_MAGIC = b"WAYWISER-GPU-"
MAGIC = _ANY_MAGIC + b"1\r\n"
_NONCE = 32
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
        body = json.dumps(message).encode()
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
        return Node(json.loads(body), "a message of the server's connection")

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


def greet_as_server(sock: socket.socket, key: bytes) -> Connection:
    """Proves the key to a client, and lets it prove the key. Raises InputError for a stranger, TransferError,
    DeadlineError.
    """
    until = time.monotonic() + SECONDS
    hello = _receive(sock, len(MAGIC) + _NONCE, until)
    if hello[: len(MAGIC)] != MAGIC:
        _refuse_greeting(sock, hello[: len(MAGIC)], until)
    mine = secrets.token_bytes(_NONCE)
    nonces = hello[len(MAGIC) :] + mine
    _send(sock, mine + _proof(key, b"server", nonces), until)
    if not hmac.compare_digest(_proof(key, b"client", nonces), _receive(sock, 32, until)):
        raise InputError("a client that does not know the key")
    return Connection(sock, key, nonces)


def _refuse_greeting(sock: socket.socket, greeted: bytes, until: float) -> NoReturn:
    if not greeted.startswith(_ANY_MAGIC):
        raise InputError("it does not greet as a client")
    _send(sock, MAGIC.ljust(_NONCE + 32, b"\0"), until)
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
