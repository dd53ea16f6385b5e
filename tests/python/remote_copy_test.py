"""Copies between GPUs of two servers, which do not pass through the client."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from encryption_test import MARK, WatchedMachines, needs_tls
from rank_jobs import runtime_folder
from remote_gpu import PATIENCE, Server, server, start_client
from remote_plain_test import on
from two_machines import TwoMachines

import waywiser as ww

__all__ = ["runtime_folder", "server"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]


def test_arrays_are_copied_between_servers(server: Server, tmp_path: Path) -> None:
    another = Server(tmp_path, "--memory", "64M")
    with ww.remote(server.address, key=server.key) as one, ww.remote(another.address, key=another.key, gpu=1) as other:
        for values in (np.arange(5.0), np.float32(3), np.zeros((0, 3)), np.ones((3, 7), bool), np.arange(1_500_000.0)):
            a = one.array(values)
            b = other.copy_of(a)
            assert (b.shape, b.dtype) == (a.shape, a.dtype)
            np.testing.assert_array_equal(b.get(), values)
            np.testing.assert_array_equal(a.get(), values)
        total = one.run("add", a, a)
        doubled = other.run("scale", other.copy_of(total), factor=0.5)
        back = one.copy_of(doubled)
        np.testing.assert_array_equal(back.get(), values)
    assert another.close() == (0, "")


def test_between_the_gpus_of_one_server(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as one, ww.remote(server.address, key=server.key, gpu=1) as other:
        for turn in range(5):
            np.testing.assert_array_equal(other.copy_of(one.array(np.full(9, turn))).get(), np.full(9, turn))


def test_what_is_no_copy_is_an_error(server: Server, tmp_path: Path) -> None:
    small = Server(tmp_path, "--memory", "1M")
    with ww.remote(server.address, key=server.key) as one, ww.remote(small.address, key=small.key) as other:
        a = one.array(np.ones(1_000_000))
        with pytest.raises(ww.InputError, match="an array of this GPU itself"):
            one.copy_of(a)
        lost = other.copy_of(a)
        with pytest.raises(ww.DeviceError, match=rf"{small.address}: array .* above this server's limit of 1048576"):
            other.synchronize()
        with pytest.raises(ww.InputError, match="there is no array"):
            lost.get()
        one.synchronize()  # its bytes were taken, and thrown away
        failed = one.run("nothing", a)
        with pytest.raises(ww.InputError, match="this server has no function 'nothing'"):
            other.copy_of(failed)
        with pytest.raises(ww.InputError, match="there is no array"):
            other.copy_of(failed)
        other.run("nothing")
        with pytest.raises(ww.InputError, match="this server has no function 'nothing'"):
            other.copy_of(a)
        np.testing.assert_array_equal(other.copy_of(one.array(np.ones(4))).get(), np.ones(4))
        small.process.kill()
        small.process.wait(PATIENCE)
        with pytest.raises(ww.TransferError, match=small.address):
            while True:
                other.copy_of(a)
        try:
            a.get()
        except (
            ww.DeadlineError
        ) as error:  # it was to give a copy already when the other one ended: told with the next call
            assert "1 of 2 ranks did not come" in str(error)
        np.testing.assert_array_equal(a.get(), np.ones(1_000_000))


@needs_tls
def test_a_server_connects_to_no_other_machine_unless_its_owner_says_so(tmp_path: Path) -> None:
    machines = TwoMachines()
    on_a, on_b = (("ip", "netns", "exec", name) for name in machines.names)
    try:
        a = Server(tmp_path, before=on_a, at="10.99.7.1:0")
        b = Server(tmp_path, "--peers", "10.99.7.3,10.98.0.0/16", before=on_b, at="10.99.7.2:0")
        code = f"""
other = ww.remote({b.address!r}, key={str(b.key)!r}, timeout=30)
x = gpu.array(np.ones(100000))
y = other.copy_of(x)
try:
    other.synchronize()
except ww.UnavailableError as error:
    print(error)
"""
        client = start_client(code, a, on_a)
        out, errors = client.communicate(timeout=PATIENCE)
        assert (client.returncode, errors) == (0, "")
        assert "this server connects to no server at '10.99.7.1': its owner admits others by --peers" in out
        for each in (a, b):
            each.close()
    finally:
        machines.close()


# The client is on the machine of the first server, which encrypts nothing there, but tells what it admits.
@needs_tls
@pytest.mark.parametrize(
    ("one", "other", "wants", "plain"),
    [
        (False, False, False, False),
        (True, True, True, True),
        pytest.param(True, True, False, False, marks=pytest.mark.long),
        (False, True, True, False),
    ],
)
def test_between_machines_copies_can_be_read_on_the_way_only_if_all_want_it(
    tmp_path: Path, one: bool, other: bool, wants: bool, plain: bool
) -> None:
    machines = WatchedMachines(tmp_path)
    on_a, on_b = on(machines, 0), on(machines, 1)
    count = 1 << 16
    try:
        a = Server(tmp_path, *["--data-plain"][:one], before=on_a, at="10.99.7.1:0")
        b = Server(tmp_path, "--peers", "10.99.7.0/24", *["--data-plain"][:other], before=on_b, at="10.99.7.2:0")
        code = f"""
gpu.close()
gpu = ww.remote({a.address!r}, key={str(a.key)!r}, data_plain={wants})
other = ww.remote({b.address!r}, key={str(b.key)!r}, data_plain={wants})
assert other.copies_plain(gpu) == gpu.copies_plain(other) == {plain}
x = gpu.array(np.tile(np.frombuffer({MARK!r}, np.uint8), {count}))
gpu.synchronize()
print('there', flush=True)
input()
y = other.copy_of(x)
other.synchronize()
print('copied', flush=True)
input()
assert (y.get() == x.get()).all()
other.close(), gpu.close()
"""
        client = start_client(code, a, on_a)  # in a, as the first server: only the copy crosses the wire
        assert client.stdin is not None and client.stdout is not None
        assert client.stdout.readline() == "there\n"
        before = len(machines.seen.read_bytes())
        client.stdin.write("\n")
        client.stdin.flush()
        assert client.stdout.readline() == "copied\n"
        assert count * len(MARK) < len(machines.seen.read_bytes()) - before < 2 * count * len(MARK)
        assert (MARK in machines.seen.read_bytes()) == plain
        _, errors = client.communicate("\n", timeout=PATIENCE)
        assert (client.returncode, errors) == (0, "")
        assert wants or MARK not in machines.seen.read_bytes()
        for each in (a, b):
            each.close()
    finally:
        machines.close()
