"""Who knows the key of a server of GPUs is served, nobody else."""

from __future__ import annotations

import os
import select
import socket
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from rank_jobs import runtime_folder
from remote_gpu import CHALLENGE, HELLO, PATIENCE, Server, server

import waywiser as ww
from waywiser.offload.connect import state_of
from waywiser.offload.keys import make_key, read_key

__all__ = ["runtime_folder", "server"]
pytestmark = pytest.mark.usefixtures("runtime_folder")


def all_of(sock: socket.socket) -> bytes:
    """What comes until the other end has closed."""
    data = b""
    try:
        while part := sock.recv(4096):
            data += part
    except ConnectionResetError:  # it has not read everything
        pass
    return data


def test_who_does_not_know_the_key_is_refused(server: Server, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    make_key(wrong)
    with pytest.raises(ww.InputError, match="the server does not know this key"):
        ww.remote(server.address, key=wrong)
    host, port = server.address.split(":")
    hellos = (b"", b"GET / HTTP/1.1\r\n\r\n", HELLO[:20], HELLO, HELLO + bytes(32), b"\xff" * 4096)
    for hello in hellos:
        with socket.create_connection((host, int(port)), PATIENCE) as stranger:
            with suppress(OSError):  # the server may have closed already
                stranger.sendall(hello)
                stranger.shutdown(socket.SHUT_WR)
            assert len(all_of(stranger)) in (0, CHALLENGE)
    silent = [socket.create_connection((host, int(port)), PATIENCE) for _ in range(200)]
    for each in silent:
        each.close()
    with ww.remote(server.address, key=server.key) as gpu:
        gpu.synchronize()
    assert not any(told["event"] == "joined" for told in server.log)


def test_a_replayed_conversation_gains_nothing(server: Server) -> None:
    """What a client has sent, to the byte, does not prove anything a second time."""
    host, port = server.address.split(":")
    sent = bytearray()
    listener = socket.create_server(("127.0.0.1", 0))

    def pass_on() -> None:
        with listener.accept()[0] as client, socket.create_connection((host, int(port)), PATIENCE) as there:
            ends = {client: there, there: client}
            while ready := select.select(list(ends), [], [], PATIENCE)[0]:
                part = ready[0].recv(4096)
                if not part:
                    return
                if ready[0] is client:
                    sent.extend(part)
                ends[ready[0]].sendall(part)

    between = threading.Thread(target=pass_on)
    between.start()
    assert state_of(f"127.0.0.1:{listener.getsockname()[1]}", key=server.key)["gpus"]
    between.join(PATIENCE)
    listener.close()
    assert len(sent) > len(HELLO) + 9 + 32
    with socket.create_connection((host, int(port)), PATIENCE) as stranger:
        stranger.sendall(sent)
        answer = all_of(stranger)
    assert answer[CHALLENGE + 13 :] == b"the server does not know this key"  # and nothing after it
    assert "does not know the key" in server.wait_for("refused")["why"]


def test_a_new_key_counts_without_a_restart(server: Server, tmp_path: Path) -> None:
    old = tmp_path / "old"
    os.link(server.key, old)
    server.key.unlink()
    make_key(server.key)
    with pytest.raises(ww.InputError, match="does not know this key"):
        ww.remote(server.address, key=old)
    with ww.remote(server.address, key=server.key) as gpu:
        gpu.synchronize()


def test_a_key_is_its_owners(tmp_path: Path) -> None:
    key = tmp_path / "key"
    make_key(key)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and len(read_key(key)) == 32
    with pytest.raises(ww.InputError, match="File exists"):
        make_key(key)
    key.chmod(0o644)
    with pytest.raises(ww.InputError, match="other users may read this key"):
        read_key(key)
    key.chmod(0o600)
    key.write_text("zz")
    with pytest.raises(ww.InputError, match="at least 64 hexadecimal digits"):
        read_key(key)
