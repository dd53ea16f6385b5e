"""Arrays that go unencrypted between machines, if client and server both want it; and who may be a server's peer."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from encryption_test import MARK, WatchedMachines, needs_tls
from rank_jobs import COMMAND, finish, runtime_folder, start
from remote_gpu import PATIENCE, Server, server, start_client
from two_machines import TwoMachines

import waywiser as ww
from waywiser.bench.offload import LOCAL, LOCAL_PINNED
from waywiser.offload.peers import Peers
from waywiser.offload.roads import kept

__all__ = ["runtime_folder", "server"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
COUNT = 1 << 15
KERNEL_MARK = b"no stranger reads this kernel"


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[WatchedMachines]:
    made = WatchedMachines(tmp_path)
    yield made
    made.close()


@pytest.fixture
def machines() -> Iterator[TwoMachines]:
    made = TwoMachines()
    yield made
    made.close()


def on(machines: TwoMachines, number: int) -> tuple[str, ...]:
    """The words before a command there. These links carry no more than TCP."""
    return ("ip", "netns", "exec", machines.names[number], "env", "WAYWISER_UCX_TLS=tcp,self")


def talk(plain: bool, server: Server) -> str:
    """A client that sends the mark, names a function, and tries to load a kernel."""
    return f"""
gpu.close()
gpu = ww.remote({server.address!r}, key={str(server.key)!r}, data_plain={plain})
marks = np.tile(np.frombuffer({MARK!r}, np.uint8), {COUNT})
assert (gpu.array(marks).get() == marks).all()
x = gpu.array(np.arange(100000.))
assert (gpu.run('scale', x, factor=2).get() == 2 * np.arange(100000.)).all()
try:
    gpu.launch(ww.CudaKernel({KERNEL_MARK!r}, 'no'), grid=1, block=1)
except ww.UnavailableError:
    pass
print(gpu.encrypted_by, gpu.data_encrypted_by)
gpu.close()
"""


@needs_tls
@pytest.mark.parametrize("plain", [False, True])
def test_arrays_can_be_read_on_the_way_only_if_both_want_it(
    watched: WatchedMachines, tmp_path: Path, plain: bool
) -> None:
    server = Server(tmp_path, "--data-plain", before=on(watched, 0), at="10.99.7.1:0")
    client = start_client(talk(plain, server), server, on(watched, 1))
    out, errors = client.communicate(timeout=PATIENCE)
    assert (client.returncode, errors) == (0, "")
    by, data_by = out.rstrip("\n").split(" ")
    assert by in ("openssl", "kernel") and data_by == ("" if plain else by)
    seen = watched.seen.read_bytes()
    assert len(seen) > 2 * COUNT * len(MARK)
    assert (MARK in seen) == plain
    assert KERNEL_MARK not in seen and b"scale" not in seen  # requests and code stay encrypted
    assert "arrays of clients that want it go over the network unencrypted" in server.close()[1]


@needs_tls
def test_a_server_that_does_not_admit_it_refuses(machines: TwoMachines, tmp_path: Path) -> None:
    server = Server(tmp_path, before=on(machines, 0), at="10.99.7.1:0")
    code = f"gpu.close()\nww.remote({server.address!r}, key={str(server.key)!r}, data_plain=True)\n"
    client = start_client(code, server, on(machines, 1))
    _, errors = client.communicate(timeout=PATIENCE)
    assert client.returncode == 1
    assert "unencrypted arrays: this server encrypts them: it was started without --data-plain" in errors
    server.close()


@needs_tls
def test_what_encryption_costs_is_measured_and_shown(machines: TwoMachines, tmp_path: Path) -> None:
    words = ("--data-plain", "--memory", "8M")  # sizes up to 1 MiB
    server = Server(tmp_path, *words, before=on(machines, 0), at="10.99.7.1:0", gpus=("--virtual", "1"))
    folder = tmp_path / "results"

    def verb(*words: str) -> str:
        done = subprocess.run(
            [*on(machines, 1), *COMMAND, *words, "--key", str(server.key)],
            env=os.environ | {"WAYWISER_RESULTS": str(folder)},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = verb("tune", "--remote", server.address, "--data-plain", "--results", str(folder), "--budget", "2")
    assert "arrays not encrypted" in told and "input of 64 KiB: " in told and " encrypted, " in told
    roads = kept(folder / "plan.json", server.address, 0)
    assert roads is not None and roads.rows("input") and roads.rows("input", plain=True)
    assert len(roads.prices()) == 6
    shown = verb("remote", server.address)
    assert "arrays of other machines: encrypted, or not if a client wants it (data_plain)" in shown
    assert "virtual GPU 0, input unencrypted: " in shown and "virtual GPU 0, output of 1 MiB: " in shown
    bench = ("bench", "offload", "--backend", "virtual_gpu", "--sizes", "40000", "--times", "1", "--budget", "0.2")
    plain = ("--remote", server.address, "--road", "direct", "--data-plain")
    rows = json.loads(verb(*bench, *plain, "--json"))["rows"]
    assert [row["road"] for row in rows] == ["remote, direct", "remote, direct, data plain", LOCAL, LOCAL_PINNED]
    link = machines.links[0][1]
    over = json.loads(verb(*bench, *plain, "--network", f"{link},lo", "--json"))
    assert [row["road"] for row in over["rows"]] == ["remote, direct", f"{link}, direct", LOCAL, LOCAL_PINNED]
    assert over["networks"] == {link: "TCP over Ethernet", "lo": "loopback"} and list(over["left_out"]) == ["lo"]
    server.close()


def test_on_one_machine_nothing_changes(tmp_path: Path) -> None:
    server = Server(tmp_path, "--data-plain")
    with ww.remote(server.address, key=server.key, data_plain=True) as gpu:
        assert gpu.encrypted_by == gpu.data_encrypted_by == ""
    for words in (
        ("tune", "--remote", server.address),
        ("bench", "offload", "--backend", "virtual_gpu", "--remote", server.address),
    ):
        code, _, errors = finish(start(*words, "--data-plain", "--key", str(server.key)))
        assert code == 2 and "is on this machine, where nothing is encrypted" in errors, errors
    assert server.close()[0] == 0


def test_machines_with_different_names_are_different_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_MACHINE", "server")
    server = Server(tmp_path)
    monkeypatch.delenv("WAYWISER_MACHINE")
    code = """
here = gpu.pinned(100000)
here[:] = range(100000)
assert (gpu.array(here).get() == here).all()
print(gpu.pinned_by(here) != "server")
gpu.close()
"""
    for name, apart in (("client", True), ("server", False)):
        client = start_client(code, server, ("env", f"WAYWISER_MACHINE={name}"))
        assert client.communicate(timeout=PATIENCE) == (f"{apart}\n", "")
    assert server.close()[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tune", "--data-plain"), "--key and --data-plain are for --remote"),
        (("bench", "offload", "--data-plain"), "offload: --data-plain is for the server of another machine"),
        (("bench", "latency", "--data-plain"), "--data-plain are for `waywiser bench offload`"),
        (("bench", "coalescing", "--data-plain"), "--data-plain is not for coalescing"),
        (("serve", "--virtual", "1", "--peers", "here"), "'here' does not appear to be an IPv4 or IPv6 network"),
    ],
)
def test_bad_options_are_one_line(words: tuple[str, ...], says: str) -> None:
    code, _, errors = finish(start(*words))
    assert code == 2 and says in errors.splitlines()[-1], errors


def test_peers_are_addresses_and_networks() -> None:
    peers = Peers("10.0.0.6, 10.1.2.3/16,fe80::/10")
    for host in ("10.0.0.6", "10.1.200.4", "fe80::1"):
        assert peers.admit(host)
    for host in ("10.0.0.7", "10.2.0.0", "127.0.0.1", "::1", "localhost", "", "10.0.0.6.example.org"):
        assert not peers.admit(host)
    assert not Peers("").admit("127.0.0.1")
