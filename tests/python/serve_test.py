"""`waywiser serve` and what `waywiser remote` shows of it: options, metrics, the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from rank_jobs import finish, runtime_folder, start
from remote_gpu import PATIENCE, Server, server

import waywiser as ww
from waywiser import _core
from waywiser.offload.connect import state_of
from waywiser.offload.keys import make_key

__all__ = ["runtime_folder", "server"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--listen", "nowhere:1"), "--listen nowhere:1: write an address of this machine and a port"),
        (("--virtual", "2", "--gpu", "2"), "--gpu 2: write numbers below 2"),
        (("--virtual", "2", "--metrics", "here"), "--metrics here: write an address of this machine and a port"),
        (
            ("--virtual", "2", "--builtins-only", "--functions", "x"),
            "--builtins-only and --functions exclude each other",
        ),
        (("--virtual", "2", "--memory", "much"), "'much' is not a size"),
        (("--virtual", "2", "--functions", "no_such_module"), "no_such_module: ModuleNotFoundError"),
        (("--virtual", "2", "--key", "/nowhere/key"), "/nowhere/key: cannot read"),
    ],
)
def test_bad_options_are_one_line(words: tuple[str, ...], says: str) -> None:
    code, _, errors = finish(start("serve", *words))
    assert code == 2 and errors.count("\n") == 1 and says in errors, errors


def test_the_verb_shows_a_server(server: Server) -> None:
    with ww.remote(server.address, key=server.key, gpu=1) as gpu:
        gpu.zeros(1 << 20, np.uint8)
        gpu.synchronize()
        code, lines, errors = finish(start("remote", server.address, "--key", str(server.key)))
    assert (code, errors) == (0, "")
    assert "virtual GPU 0: 0 clients, 0 B in use" in lines and "at most 64 MiB for a client" in lines
    assert any(line.startswith("client 127.0.0.1:") and "GPU 1" in line for line in lines)


def test_the_list_has_the_server_also_where_there_is_no_gpu(server: Server) -> None:
    if _core.discover().ids("gpu"):
        pytest.skip("this machine has GPUs")
    code, lines, errors = finish(start("serve", "--list", "--key", str(server.key), "--listen", server.address))
    assert (code, errors) == (0, "") and {f"at {server.address}:", "  virtual GPU 0: 0 clients, 0 B in use"} <= set(
        lines
    )
    assert "this machine has no GPU to offer; --virtual N offers virtual ones, for tests" in lines


def test_a_server_of_builtins_only_runs_nothing_else(tmp_path: Path) -> None:
    server = Server(tmp_path, "--builtins-only")
    with ww.remote(server.address, key=server.key) as gpu:
        x = gpu.array(np.ones(4))
        np.testing.assert_array_equal(gpu.run("add", x, x).get(), np.full(4, 2.0))
        gpu.run("mine", x)
        words = "mine: this server was started with --builtins-only: it runs add, .*, scale, and nothing else"
        with pytest.raises(ww.UnavailableError, match=words):
            gpu.synchronize()
        np.testing.assert_array_equal(x.get(), np.ones(4))
        assert state_of(server.address, key=server.key)["builtins_only"]
        code, lines, errors = finish(start("remote", server.address, "--key", str(server.key)))
    assert (code, errors) == (0, "")
    assert "only the built-in functions: it was started with --builtins-only" in lines
    assert server.close() == (0, "")


def test_metrics_count_clients(tmp_path: Path) -> None:
    server = Server(tmp_path, "--metrics", "127.0.0.1:0")
    address = server.log[0]["metrics"]

    def metrics() -> dict[str, float]:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE) as answer:
            lines = [line for line in answer.read().decode().splitlines() if line.startswith("waywiser_serve")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    assert metrics()['waywiser_serve_clients{gpu="virtual GPU 1"}'] == 0
    wrong = tmp_path / "wrong"
    make_key(wrong)
    with pytest.raises(ww.InputError):
        ww.remote(server.address, key=wrong)
    server.wait_for("refused")
    with ww.remote(server.address, key=server.key, gpu=1) as gpu:
        kept = gpu.zeros(1 << 20, np.uint8)
        gpu.synchronize()
        server.wait_until(lambda state: state["gpus"][1]["memory"] == kept.shape[0])
        now = metrics()
        assert now['waywiser_serve_clients{gpu="virtual GPU 1"}'] == 1
        assert now['waywiser_serve_memory_bytes{gpu="virtual GPU 1"}'] == 1 << 20
    server.wait_for("left")
    after = metrics()
    assert after["waywiser_serve_joined_total"] == after["waywiser_serve_refused_total"] == 1
    assert after["waywiser_serve_failed_total"] == 0 and after["waywiser_serve_requests_total"] >= 2
    assert after['waywiser_serve_clients{gpu="virtual GPU 1"}'] == 0
    assert server.close()[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_clients_processes(number: signal.Signals, tmp_path: Path) -> None:
    server = Server(tmp_path)
    gpu = ww.remote(server.address, key=server.key)
    gpu.synchronize()
    joined = server.wait_for("joined")
    code, errors = server.close(number)
    assert (code, errors) == (0, "")
    assert not Path(f"/proc/{joined['process']}").exists()
    with pytest.raises(ww.TransferError):
        while True:
            gpu.synchronize()
    gpu.close()


LOSES_EXCEPTIONS = """
from waywiser.reception import Reception
look = Reception.look
def loses(self, seconds):
    try:
        look(self, seconds)
    except KeyboardInterrupt:
        pass
Reception.look = loses
from waywiser.cli import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_counts_where_python_loses_its_exception(number: signal.Signals, tmp_path: Path) -> None:
    """As in a destructor."""
    words = (
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--virtual",
        "1",
        "--key",
        str(tmp_path / "key"),
        "--new-key",
        "--json",
    )
    command = [sys.executable, "-c", LOSES_EXCEPTIONS, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert json.loads(server.stdout.readline())["event"] == "listening"
        server.send_signal(number)
        try:
            out, errors = server.communicate(timeout=PATIENCE)
        finally:
            server.kill()
    assert (server.returncode, errors) == (0, "")
    assert json.loads(out)["event"] == "stopping"
