"""The metrics of `waywiser serve` for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from waywiser.errors import InputError
from waywiser.monitor.scrapes import ScrapeServer, build_info
from waywiser.offload.server import Server


class ServerMetrics:
    """A collector for prometheus_client. `about`: labels of waywiser_build_info."""

    def __init__(self, server: Server, about: Mapping[str, str]) -> None:
        self._server, self._about = server, about

    def describe(self) -> list[Any]:
        """Empty: the values are read with each scrape."""
        return []

    def collect(self) -> Iterator[Any]:
        """Clients and their memory now, and what has happened since the start."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        state, totals = self._server.state(), self._server.totals()
        clients = GaugeMetricFamily("waywiser_serve_clients", "Clients that use a GPU.", labels=["gpu"])
        memory = GaugeMetricFamily("waywiser_serve_memory_bytes", "Bytes of the clients' arrays.", labels=["gpu"])
        for gpu in state["gpus"]:
            clients.add_metric([gpu["name"]], gpu["clients"])
            memory.add_metric([gpu["name"]], gpu["memory"])
        yield clients
        yield memory
        for name, text in (
            ("joined", "Clients that have joined."),
            ("refused", "Clients that were refused."),
            ("failed", "Clients that did not end in order."),
            ("requests", "Requests of clients that have left."),
        ):
            yield CounterMetricFamily(f"waywiser_serve_{name}", text, totals[name])
        yield build_info(self._about)


def serve_metrics(server: Server, about: Mapping[str, str], address: tuple[str, int]) -> ScrapeServer:
    """Answers scrapes until the returned server is shut down. Raises InputError if it cannot listen there."""
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry()
    registry.register(ServerMetrics(server, about))
    try:
        return ScrapeServer(registry, *address)
    except OSError as error:
        raise InputError(f"--metrics {address[0]}:{address[1]}: {error.strerror or error}") from error
