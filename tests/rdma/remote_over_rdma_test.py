"""A GPU of the other machine: its arrays go over RDMA if client and server want that, else encrypted over TCP."""

from __future__ import annotations

import json
import secrets
import sys

import pytest
from group_over_rdma_test import HERE, LARGEST_PACKET, PORTS, ROOT, VERBS_ONLY, packets_and_bytes
from rdma_testbed.two_guests import TwoGuests

from waywiser import _core

KEY = "/tmp/waywiser-serve.key"
VARIABLES = VERBS_ONLY | {
    "WAYWISER_UCX_TLS": "rc,self",
    "PYTHONPATH": str(ROOT / "python"),
    "PYTHONDONTWRITEBYTECODE": "1",
}


def check_client(link: TwoGuests, address: str, plain: bool) -> None:
    """What came back is intact, and has crossed the link as packets of RDMA, or encrypted over TCP."""
    before = packets_and_bytes(link)
    words = [sys.executable, HERE / "remote_client.py", address, KEY, *(["plain"] if plain else [])]
    client = link.guests[1].run(words, VARIABLES, seconds=150)
    packets, all_bytes = (after - earlier for after, earlier in zip(packets_and_bytes(link), before, strict=True))
    (encrypted,) = (line.split()[1:] for line in client.lines if line.startswith("encrypted"))
    assert encrypted[0] in ("openssl", "kernel") and encrypted[1] == ("no" if plain else encrypted[0])
    moved = int(client.lines[-1].removeprefix("intact "))
    assert all_bytes > moved / 3  # results leave the first guest
    assert packets > moved / 3 / LARGEST_PACKET if plain else packets == 0


@pytest.mark.skipif(bool(_core.why_no_tls()), reason=_core.why_no_tls())
def test_a_gpu_of_the_other_machine(link: TwoGuests) -> None:
    key = secrets.token_hex(32)
    for guest in link.guests:
        guest.run(["/bin/sh", "-c", f"umask 077; echo {key} > {KEY}"])
    address = f"10.98.7.1:{next(PORTS)}"
    words = ["serve", "--virtual", "1", "--memory", "100M", "--listen", address, "--key", KEY, "--data-plain", "--json"]
    start = [sys.executable, "-c", "from waywiser.cli import main; main()"]
    server = link.guests[0].start([*start, *words], VARIABLES, seconds=300)
    assert json.loads(server.wait_for_line('{"at"'))["event"] == "listening"
    for plain in (True, False):
        check_client(link, address, plain)
        assert json.loads(server.wait_for_line('{"at"'))["event"] == "joined"
        left = json.loads(server.wait_for_line('{"at"'))
        assert (left["event"], left["why"]) == ("left", "")
