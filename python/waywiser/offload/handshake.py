"""The server's end of a connection with a client, who has to prove that it knows the key before anything is parsed.

They say what ranks say that meet, in the core: src/waywiser/offload/serve_line.hpp. The version of all that follows is
in the client's first message, and in the server's answer.
"""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable
from typing import Any

from waywiser import _core
from waywiser.errors import InputError
from waywiser.json_fields import Node
from waywiser.reception import Talk

LATER: bytes = _core.serve_later  # to a stranger of too many
SECONDS = 5.0  # for a whole handshake


class Connection:
    """One proved connection; `secret`: hexadecimal digits that only both ends know, for the group that they form."""

    def __init__(self, line: _core.ServeLine, here: str = "") -> None:
        self.line, self.here = line, here  # the address of this end
        self.secret = line.secret

    def send(self, message: dict[str, Any], seconds: float = SECONDS) -> None:
        """Sends a message, encrypted. Raises TransferError, DeadlineError."""
        self.line.send(json.dumps(message).encode(), seconds)

    def receive(self, seconds: float = SECONDS) -> Node:
        """The next message. Raises TransferError, DeadlineError; InputError for one that was changed."""
        what = "a message of the server's connection"
        try:
            return Node(json.loads(self.line.receive(seconds)), what)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{what}: not valid JSON: {' '.join(str(error).split())}") from None

    def close(self) -> None:
        """Raises nothing."""
        del self.line


def greeting(sock: socket.socket, key: Callable[[], bytes]) -> Talk[Connection]:
    """Proves the key to a client that proves it; the socket is the connection's. Raises InputError for a stranger,
    TransferError.
    """
    here = sock.getsockname()[0]
    line = _core.ServeLine(sock.detach())
    while not line.hear_client(key):
        yield select.POLLIN
    return Connection(line, here)
