"""Answers Prometheus over HTTP: a few connections, each for a short time, whoever they come from."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from waywiser.reception import Reception, Talk, give, take_some

_MOST, _SECONDS = 16, 10.0  # connections, and the time of each
_LONGEST_HEAD = 8 << 10


def build_info(labels: Mapping[str, str]) -> Any:
    """A metric with the value 1 whose labels say what made the others: version, fingerprint, machine."""
    from prometheus_client.core import GaugeMetricFamily

    info = GaugeMetricFamily("waywiser_build_info", "Version of waywiser, and the machine.", labels=list(labels))
    info.add_metric(list(labels.values()), 1)
    return info


class ScrapeServer:
    """Answers GET and HEAD of / and /metrics with what the registry has, which is not read again for `fresh` seconds.

    Who has to go because too many others ask gets 503, if possible one that has said nothing yet.
    Raises OSError if it cannot listen there.
    """

    def __init__(self, registry: Any, address: str, port: int, fresh: float = 0.0) -> None:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        self._type = CONTENT_TYPE_LATEST
        self._read: Callable[[], bytes] = lambda: generate_latest(registry)
        self._known, self._until, self._fresh = b"", 0.0, fresh
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((address, port), family=family)
        self.server_port = int(listener.getsockname()[1])
        self._ended = threading.Event()
        full = _response("503 Service Unavailable", "text/plain", b"too many others ask: try again\n")
        reception = Reception(listener, self._answer, most=_MOST, seconds=_SECONDS, farewell=full)
        self._thread = threading.Thread(target=reception.run, args=(self._ended.is_set,), daemon=True)
        self._thread.start()

    def shutdown(self) -> None:
        """Answers nobody any more. Raises nothing."""
        self._ended.set()
        self._thread.join()

    def _answer(self, sock: socket.socket, _: str) -> Talk[None]:
        head = b""
        while b"\r\n\r\n" not in head and len(head) < _LONGEST_HEAD:
            head += yield from take_some(sock, _LONGEST_HEAD - len(head))
        words = head.split(b"\r\n")[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1.") or b"\r\n\r\n" not in head:
            yield from give(sock, _response("400 Bad Request", "text/plain", b"this is no request\n"))
        elif words[0] not in (b"GET", b"HEAD"):
            yield from give(sock, _response("405 Method Not Allowed", "text/plain", b"GET or HEAD\n"))
        elif words[1].partition(b"?")[0] not in (b"/", b"/metrics"):
            yield from give(sock, _response("404 Not Found", "text/plain", b"there is only /metrics\n"))
        else:
            yield from give(sock, _response("200 OK", self._type, self._metrics(), words[0] == b"HEAD"))

    def _metrics(self) -> bytes:
        if time.monotonic() >= self._until:
            self._known = self._read()
            self._until = time.monotonic() + self._fresh
        return self._known


def _response(status: str, kind: str, body: bytes, is_head: bool = False) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (b"" if is_head else body)
