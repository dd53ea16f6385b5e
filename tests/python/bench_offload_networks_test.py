"""`waywiser bench offload --network`: each road over each network that is there, beside local programs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rank_jobs import COMMAND, runtime_folder
from remote_gpu import Server

import waywiser as ww
from waywiser.bench.offload import LOCAL, LOCAL_PINNED, network_road
from waywiser.bench.offload_networks import LOOPBACK, networks_here, networks_in, variables_for
from waywiser.bench.offload_sides import Asked, sides_of
from waywiser.look.networks import INFINIBAND, TCP
from waywiser.look.root import Root
from waywiser.offload.client import DATA_ROADS

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.usefixtures("runtime_folder")
SMALL = ("--backend", "virtual_gpu", "--sizes", "400000", "--times", "1", "--budget", "0.2")


def run(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([*COMMAND, "bench", *words], capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout, done.stderr


def through_loopback() -> int:
    return int(Path("/sys/class/net/lo/statistics/rx_bytes").read_text())


def a_machine(folder: Path) -> Root:
    files = {
        "class/net/eth0/type": "1", "class/net/eth0/operstate": "up",
        "class/net/eth1/type": "1", "class/net/eth1/operstate": "down",
        "class/infiniband/mlx5_0/node_type": "1: CA", "class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
        "class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand", "class/cxi/cxi0/mtu": "1",
    }  # fmt: skip
    for name, text in files.items():
        (folder / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "sys" / name).write_text(text + "\n")
    return Root(folder)


def test_names_are_those_of_ucx(tmp_path: Path) -> None:
    here = networks_here(a_machine(tmp_path))
    assert here == {"lo": LOOPBACK, "mlx5_0:1": INFINIBAND, "eth0": TCP}  # UCX has no transport on Slingshot
    assert networks_in("all", here) == here
    assert list(networks_in("eth0 lo,eth0", here)) == ["eth0", "lo"]
    for text in ("eth1", "eth0,cxi0", ","):
        with pytest.raises(ww.InputError, match=r"^--network.*: write some of all,lo,mlx5_0:1,eth0$"):
            networks_in(text, here)
    assert variables_for("mlx5_0:1", INFINIBAND)["WAYWISER_UCX_TLS"] == "ib,self"
    assert variables_for("eth0", TCP, "client") == {
        "WAYWISER_UCX_TLS": "tcp,self", "WAYWISER_UCX_NET_DEVICES": "eth0", "WAYWISER_MACHINE": "client",
    }  # fmt: skip


@pytest.mark.slow
def test_a_table_of_networks_and_roads() -> None:
    before = through_loopback()
    code, out, errors = run("offload", "--network", "lo", *SMALL, "--json")
    assert code == 0, errors
    told = json.loads(out)
    assert (told["networks"], told["left_out"]) == ({"lo": LOOPBACK}, {})
    assert "Virtual GPUs" in told["warning"]
    roads = [network_road("lo", road) for road in DATA_ROADS]
    assert [row["road"] for row in told["rows"]] == [*roads, LOCAL, LOCAL_PINNED]
    turns = sum(row["rounds"] for row in told["rows"] if row["road"] in roads)
    assert through_loopback() - before >= 3 * 400_000 * turns  # no bytes went through shared memory


@pytest.mark.slow
def test_a_network_that_does_not_work_is_left_out() -> None:
    asked = Asked("", None, False, {"nowhere0": TCP, "lo": LOOPBACK}, ("pinned",), True, 1 << 20)
    with sides_of(asked) as of:
        assert list(of.sides) == ["lo, pinned", LOCAL, LOCAL_PINNED]
        assert list(of.left_out) == ["nowhere0"] and of.virtual
    with pytest.raises(ww.TransferError, match=r"^nowhere0: "), sides_of(asked._replace(networks={"nowhere0": TCP})):
        pass


@pytest.mark.slow
def test_over_a_network_to_a_server_that_runs_already(tmp_path: Path) -> None:
    server = Server(tmp_path, "--data-plain")
    words = ("offload", "--remote", server.address, "--key", str(server.key), "--network", "lo", *SMALL)
    for more, says in (
        ((), "arrays go encrypted by TCP to the address of --remote: --network needs --data-plain"),
        (("--data-plain",), "is on this machine, where nothing is encrypted"),
    ):
        code, out, errors = run(*words, *more)
        assert (code, out) == (2, "") and says in errors.splitlines()[-1], errors
    server.close()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("offload", "--network", "nowhere0"), "--network 'nowhere0': write some of all,lo"),
        (("offload", "--machine", "remote-t4", "--network", "lo"), "--network is not for offload --machine"),
        (("latency", "--network", "lo"), "--network and --data-plain are for `waywiser bench offload`"),
        (("merge", "--network", "lo"), "--network is not for merge"),
        (("coalescing", "--network", "lo"), "--network is not for coalescing"),
        (("sharing", "--network", "lo"), "--network is not for sharing"),
    ],
)
def test_what_does_not_fit_is_one_line(words: tuple[str, ...], says: str) -> None:
    code, out, errors = run(*words)
    assert (code, out) == (2, "") and says in errors.splitlines()[-1], errors
