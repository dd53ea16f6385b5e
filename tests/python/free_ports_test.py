"""Ports that two tests, or a test and a connection, cannot both have."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from free_ports import for_connections, free_ports, is_free

ANOTHER_TEST = "from free_ports import free_ports; print([free_ports(2) for _ in range(20)])"


def test_two_tests_never_get_the_same_port() -> None:
    mine = [free_ports(2) for _ in range(20)]
    said = subprocess.run(
        [sys.executable, "-c", ANOTHER_TEST], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    firsts = mine + [int(word) for word in said.stdout.strip("[]\n").split(",")]
    ports = [port for first in firsts for port in (first, first + 1)]
    assert len(set(ports)) == len(ports) == 80


def test_no_connection_gets_the_port() -> None:
    """As one did: 'rank 0 cannot listen on 127.0.0.1:58767: Address already in use'."""
    assert free_ports(1) not in for_connections()


def test_a_port_with_a_listener_is_not_free() -> None:
    port = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        assert not is_free(port)
    assert is_free(port)
