"""A client and a server of different versions: one error that names both."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rank_jobs import runtime_folder
from remote_gpu import HELLO, PATIENCE, PROTOCOL, Server, connected, greeted_as_server, proved, server

import waywiser as ww
from waywiser import _core
from waywiser.offload.keys import make_key

__all__ = ["runtime_folder", "server"]
pytestmark = pytest.mark.usefixtures("runtime_folder")
OURS = f"waywiser {ww.__version__} (protocol {_core.offload_protocol})"
OLDER = "an older one, which does not tell its version"
REMEDY = "install the same version at both"
NEXT_HELLO = HELLO[:9] + struct.pack("<I", PROTOCOL + 1) + HELLO[13:]


@contextmanager
def made_up_server(folder: Path, answer: dict[str, Any] | None) -> Iterator[str]:
    """Answers one client with a meeting of another version; None: it greets by another version."""
    make_key(folder / "key")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener.accept()[0] as sock, contextlib.suppress(OSError):
            if answer is None:
                why = b"this server greets by protocol 9"
                sock.sendall(struct.pack("<IBII", 0x31475757, 7, 4 + len(why), len(why)) + why)
                sock.recv(1024)
                return
            connection = greeted_as_server(sock, folder / "key")
            assert connection.receive().text("version") == ww.__version__
            meeting = {"port": 1, "job": "j", "host": "127.0.0.1", "encrypt": False, "gpu": "GPU 0", "memory": 1}
            connection.send({**meeting, **answer})
            select.select([connection.line], [], [], PATIENCE)  # until the client has gone

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        thread.join(PATIENCE)
        listener.close()


@pytest.mark.parametrize(
    ("answer", "theirs"),
    [
        ({}, OLDER),
        ({"version": "9.0.0", "protocol": 2}, "waywiser 9.0.0 (protocol 2)"),
        ({"version": ww.__version__, "protocol": 99}, f"waywiser {ww.__version__} (protocol 99)"),
    ],
)
def test_a_client_names_both_versions(tmp_path: Path, answer: dict[str, Any], theirs: str) -> None:
    with made_up_server(tmp_path, answer) as address, pytest.raises(ww.InputError) as told:
        ww.remote(address, key=tmp_path / "key")
    assert str(told.value).endswith(f": this client has {OURS}, the server {theirs}: {REMEDY}")


def test_a_client_passes_on_that_the_greetings_differ(tmp_path: Path) -> None:
    with made_up_server(tmp_path, None) as address, pytest.raises(ww.InputError) as told:
        ww.remote(address, key=tmp_path / "key")
    assert str(told.value) == f"{address}: this server greets by protocol 9"


@pytest.mark.parametrize(
    ("said", "theirs"),
    [({}, OLDER), ({"version": "0.0.9", "protocol": 1}, "waywiser 0.0.9 (protocol 1)")],
)
def test_a_server_names_both_versions(server: Server, said: dict[str, Any], theirs: str) -> None:
    client = proved(server)
    client.send({"do": "use", "gpu": 0, **said})
    problem = client.receive().text("problem")
    client.close()
    assert problem == f"this server has {OURS}, the client {theirs}: {REMEDY}"
    assert server.wait_for("refused")["why"] == problem


def test_a_server_names_both_greetings(server: Server) -> None:
    theirs = f"the client by {PROTOCOL + 1}: install the same version at both"
    why = f"this server greets by protocol {PROTOCOL}, {theirs}"
    with connected(server.address) as sock:
        sock.sendall(NEXT_HELLO)
        assert sock.recv(1024, socket.MSG_WAITALL)[13:] == why.encode()
    assert server.wait_for("refused")["why"] == why
