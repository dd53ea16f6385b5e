"""The metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from waywiser.monitor.watcher import View


class Metrics:
    """A collector for prometheus_client: every scrape takes a view."""

    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view

    def describe(self) -> list[Any]:
        """Empty: the devices are only known when they are read."""
        return []

    def collect(self) -> Iterator[Any]:
        """All metrics of one view."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        view, labels = self._view(), ["road", "device", "direction"]
        moved = CounterMetricFamily("waywiser_road_bytes", "Bytes that a device has moved.", labels=labels)
        errors = CounterMetricFamily(
            "waywiser_road_errors", "Errors, losses, retransmissions.", labels=["road", "device", "what"]
        )
        rates = GaugeMetricFamily("waywiser_road_bytes_per_second", "Rate since the last scrape.", labels=labels)
        for family, values in ((moved, view.sample.bytes), (errors, view.sample.errors), (rates, view.rates)):
            for key, value in values.items():
                family.add_metric(list(key), value)
            yield family
        slow = GaugeMetricFamily("waywiser_slow_roads", "Links under load below 80 % of their profile.")
        slow.add_metric([], len(view.warnings))
        yield slow
        yield from _job(view)


def _job(view: View) -> Iterator[Any]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    seconds = GaugeMetricFamily("waywiser_job_seconds", "Wall-clock time of the job.", labels=["job"])
    moved = CounterMetricFamily("waywiser_job_bytes", "Bytes of the job by kind of link.", labels=["job", "road"])
    if view.job:
        seconds.add_metric([view.job], view.job_seconds)
        for road, count in view.job_bytes.items():
            moved.add_metric([view.job, road], count)
    yield seconds
    yield moved


def text_of(view: View) -> str:
    """The metrics in Prometheus's format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(Metrics(lambda: view))
    return generate_latest(registry).decode()


def serve(view: Callable[[], View], address: str, port: int) -> Any:
    """Answers scrapes until the returned server is shut down."""
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(Metrics(view))
    server, _ = start_http_server(port, address, registry)
    return server
