"""What strangers cost a server of GPUs, counted in this process."""

from __future__ import annotations

import os
import select
import socket
import threading
import time

import pytest
from remote_gpu import HELLO, PATIENCE

from waywiser import _core
from waywiser.offload.handshake import LATER, greeting
from waywiser.reception import Reception, Talk

KEY = b"k" * 32


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def proves(sock: socket.socket, _: str) -> Talk[None]:
    yield from greeting(sock, lambda: KEY)


@pytest.mark.parametrize("says", [b"", HELLO])
def test_a_stranger_costs_one_descriptor_until_it_has_to_go(says: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        reception = Reception(listener, proves, most=3, seconds=PATIENCE, farewell=LATER)
        before = descriptors()
        strangers = [socket.create_connection(listener.getsockname(), PATIENCE) for _ in range(3)]
        for each in strangers:
            each.sendall(says)
        until = time.monotonic() + PATIENCE
        while descriptors() != before + 3 + 3 and time.monotonic() < until:  # theirs are of this process, too
            reception.look(PATIENCE)  # the system may hand them over one by one
        assert descriptors() == before + 3 + 3
        strangers.append(socket.create_connection(listener.getsockname(), PATIENCE))
        reception.look(PATIENCE)
        assert b"".join(iter(lambda: strangers[0].recv(1 << 16), b"")).endswith(LATER)
        assert descriptors() == before + 4 + 3
        for each in strangers:
            each.close()


def test_a_client_that_greets_leaves_the_other_threads_their_turns() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock = socket.create_connection(listener.getsockname(), PATIENCE)
        line = _core.ServeLine(sock.detach())
        server = threading.Thread(target=answer, args=(listener,))
        server.start()
        line.greet_server(KEY, PATIENCE)
        server.join(PATIENCE)
        assert len(line.secret) == 64


def answer(listener: socket.socket) -> None:
    sock, _ = listener.accept()
    number = sock.fileno()
    for _ in greeting(sock, lambda: KEY):
        assert select.select([number], [], [], PATIENCE)[0]
