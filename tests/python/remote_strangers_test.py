"""A server of GPUs outlives strangers, and serves those who have the key meanwhile."""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from rank_jobs import runtime_folder
from remote_gpu import HELLO, PATIENCE, Server, greeted_as_server, proved, server

import waywiser as ww
from waywiser import _core
from waywiser.offload.connect import state_of
from waywiser.offload.handshake import LATER
from waywiser.offload.keys import make_key, read_key

__all__ = ["runtime_folder", "server"]
pytestmark = pytest.mark.usefixtures("runtime_folder")
WITH_DESCRIPTORS = (
    "import os, resource, sys; n = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_NOFILE, (n, n));"
    " os.execv(sys.argv[2], sys.argv[2:])"
)


def place(address: str) -> tuple[str, int]:
    host, port = address.split(":")
    return host, int(port)


def crowd(address: str, count: int) -> list[socket.socket]:
    """So many strangers who say nothing; some may be waiting to be accepted."""
    made = []
    for _ in range(count):
        made.append(socket.socket())
        made[-1].setblocking(False)
        made[-1].connect_ex(place(address))
    return made


@contextmanager
def flood(address: str, says: bytes) -> Iterator[None]:
    """Strangers who come as fast as they can, of whom 300 stay."""
    over = threading.Event()

    def come() -> None:
        here: list[socket.socket] = []
        while not over.is_set():
            with contextlib.suppress(OSError):
                here.append(socket.create_connection(place(address), 1))
                here[-1].sendall(says)
            if len(here) > 300:
                here.pop(0).close()
        for each in here:
            each.close()

    thread = threading.Thread(target=come)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_strangers_take_all_descriptors_and_a_client_is_served(tmp_path: Path) -> None:
    server = Server(tmp_path, before=(sys.executable, "-c", WITH_DESCRIPTORS, "48"))
    with ww.remote(server.address, key=server.key) as before:
        x = before.array(np.ones(3))
        strangers = crowd(server.address, 200)
        with ww.remote(server.address, key=server.key) as gpu:
            np.testing.assert_array_equal(gpu.array(np.ones(5)).get(), np.ones(5))
        np.testing.assert_array_equal(x.get(), np.ones(3))
        for each in strangers:
            each.close()
    assert server.close() == (0, "")


@pytest.mark.parametrize("says", [b"", HELLO[:9], HELLO])
def test_clients_are_served_in_a_flood(tmp_path: Path, says: bytes) -> None:
    server = Server(tmp_path)
    with flood(server.address, says):
        for _ in range(2):
            with ww.remote(server.address, key=server.key) as gpu:
                np.testing.assert_array_equal(gpu.array(np.ones(3)).get(), np.ones(3))
            assert len(state_of(server.address, key=server.key)["gpus"]) == 2
    assert server.close() == (0, "")


def test_a_flood_does_not_fill_the_log(tmp_path: Path) -> None:
    server = Server(tmp_path)
    for _ in range(1500):
        with socket.create_connection(place(server.address), PATIENCE) as stranger:
            stranger.sendall(b"x" * 48)
    state_of(server.address, key=server.key)
    assert server.close() == (0, "")
    refused = server.rest_of_log("refused")
    assert 0 < len(refused) < 1000
    assert "not one of ours" in refused[0]["why"]


def test_a_client_tries_again_when_there_are_too_many(tmp_path: Path) -> None:
    make_key(tmp_path / "key")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tries = []

        def answer() -> None:
            for turn in range(4):
                sock, _ = listener.accept()
                tries.append(turn)
                with sock:
                    if turn == 0:  # before its greeting
                        sock.sendall(LATER)
                        sock.recv(len(HELLO), socket.MSG_WAITALL)
                    elif turn == 1:
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    elif turn == 2:  # after its hello
                        line = _core.ServeLine(os.dup(sock.fileno()))
                        assert select.select([sock], [], [], PATIENCE)[0]
                        assert not line.hear_client(lambda: read_key(tmp_path / "key"))
                        sock.sendall(LATER)
                    else:
                        connection = greeted_as_server(sock, tmp_path / "key")
                        assert connection.receive().text("do") == "list"
                        connection.send({"gpus": []})

        thread = threading.Thread(target=answer)
        thread.start()
        assert state_of(f"127.0.0.1:{listener.getsockname()[1]}", key=tmp_path / "key") == {"gpus": []}
        thread.join(PATIENCE)
    assert tries == [0, 1, 2, 3]


def descriptors_and_threads(server: Server) -> tuple[int, int]:
    folder = Path(f"/proc/{server.process.pid}")
    return len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir()))


def heard(sock: socket.socket) -> bytes:
    """All that comes until the other end closes."""
    return b"".join(iter(lambda: sock.recv(4096), b""))


def asked(address: str, request: bytes) -> bytes:
    """The answer to a request; who asks in a crowd may have to ask again."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(ConnectionError), socket.create_connection(place(address), PATIENCE) as sock:
            sock.sendall(request)
            if (told := heard(sock)) and not told.startswith(b"HTTP/1.1 503 "):
                return told
        assert time.monotonic() < deadline, "nobody answers"


def test_strangers_at_the_metrics_cost_little(tmp_path: Path) -> None:
    server = Server(tmp_path, "--metrics", "127.0.0.1:0")
    address = server.log[0]["metrics"]
    asked(address, b"GET /metrics HTTP/1.1\r\n\r\n")  # before it answers, it may not have opened all that it needs
    files, threads = descriptors_and_threads(server)
    strangers = crowd(address, 300)
    for stranger, said in zip(strangers, (b"G", b"GET / HTTP/1.1\r\n", b"x" * 10000, b"\r\n\r\n"), strict=False):
        with contextlib.suppress(OSError):
            stranger.send(said)
    assert b"waywiser_serve_clients" in asked(address, b"GET /metrics HTTP/1.1\r\n\r\n")
    after = descriptors_and_threads(server)
    assert after[0] <= files + 16 + 2 and after[1] == threads  # while one more goes, and it counts its own
    for said, status in (
        (b"GET /other HTTP/1.1\r\n\r\n", b"404"),
        (b"POST / HTTP/1.1\r\n\r\n", b"405"),
        (b"HEAD / HTTP/1.0\r\n\r\n", b"200"),
        (b"what\r\n\r\n", b"400"),
    ):
        told = asked(address, said)
        assert told.startswith(b"HTTP/1.1 " + status), told
    for each in strangers:
        each.close()
    assert server.close() == (0, "")


def test_who_asks_for_metrics_in_a_crowd_is_told_to_try_again(tmp_path: Path) -> None:
    server = Server(tmp_path, "--metrics", "127.0.0.1:0")
    address = server.log[0]["metrics"]
    with contextlib.ExitStack() as here:
        first, *_ = (here.enter_context(socket.create_connection(place(address), PATIENCE)) for _ in range(17))
        assert heard(first).startswith(b"HTTP/1.1 503 ")
    assert server.close() == (0, "")


BAD = [
    b"{", b"\xff\xfe", b"[" * 60_000, b"9" * 5000, b"[]", b'"text"', b"{}", b'{"do": 3}', b'{"do": "else"}', b"NaN",
    b'{"do": "use", "version": 3, "protocol": "x"}', b'{"do": ["list"]}',
]  # fmt: skip


def test_who_has_the_key_and_talks_nonsense_gets_one_line(server: Server) -> None:
    for body in BAD:
        client = proved(server)
        client.line.send(body, PATIENCE)
        problem = client.receive(PATIENCE).text("problem")
        assert problem and "\n" not in problem and "Traceback" not in problem
        client.close()
        assert server.wait_for("refused")["why"] == problem
    for number in (-1, 2, 1 << 70, 0.5, True, "0"):
        client = proved(server)
        client.send({"do": "use", "gpu": number, "version": ww.__version__, "protocol": _core.offload_protocol})
        assert client.receive(PATIENCE).text("problem")
        client.close()


def test_one_byte_more_after_the_request_ends_its_client_only(server: Server) -> None:
    client = proved(server)
    client.send({"do": "use", "gpu": 0, "version": ww.__version__, "protocol": _core.offload_protocol})
    assert client.receive(PATIENCE).integer("port") > 0
    os.write(client.line.fileno(), b"x")
    assert server.wait_for("left")["why"] == "its connection says more than a request"
    client.close()
    with ww.remote(server.address, key=server.key) as gpu:
        gpu.synchronize()


@pytest.mark.parametrize(
    ("text", "is_key"),
    [
        ("ab" * 32, True), ("AB" * 32 + "\n", True), ("\n\t " + "ab" * 40 + " \v\f\r\n", True),
        ("ab" * 31, False), ("ab" * 32 + "a", False), ("ab " * 32, False), ("ab" * 16 + "\n" + "ab" * 16, False),
        ("\N{NO-BREAK SPACE}" + "ab" * 32, False), ("\N{BYTE ORDER MARK}" + "ab" * 32, False),
        ("+a" * 32, False), ("0x" + "ab" * 32, False), ("ab" * 32 + "\0", False), ("", False), (" \n", False),
        ("\N{FULLWIDTH DIGIT ONE}" * 64, False),
    ],
)  # fmt: skip
def test_server_and_client_read_the_same_key(tmp_path: Path, text: str, is_key: bool) -> None:
    key = tmp_path / "key"
    key.write_bytes(text.encode())
    key.chmod(0o600)
    try:
        mine = len(read_key(key)) >= 32
    except ww.InputError:
        mine = False
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(ww.TransferError if is_key else ww.InputError):
            state_of(f"127.0.0.1:{nobody.getsockname()[1]}", key=key)
    assert mine == is_key


def test_a_key_with_white_space_serves(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("\n " + "ab" * 32 + "\n\n")
    (tmp_path / "key").chmod(0o600)
    server = Server(tmp_path)
    assert len(state_of(server.address, key=server.key)["gpus"]) == 2
    assert server.close() == (0, "")


def test_every_promise_names_a_test_that_is_there() -> None:
    root = Path(__file__).parents[2]
    named = re.findall(r"`([\w/]+_test\.(?:py|cpp))`", (root / "SECURITY.md").read_text())
    assert len(named) > 10
    assert [name for name in named if not (root / name).exists() and not (Path(__file__).parent / name).exists()] == []
