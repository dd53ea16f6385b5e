"""The metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from waywiser.monitor.scrapes import ScrapeServer, build_info
from waywiser.monitor.watcher import View

# Event of a sample -> its counter's name, to which Prometheus adds _total, and its meaning.
ERRORS: dict[str, tuple[str, str]] = {
    "rx_errors": ("waywiser_receive_errors", "Packets that a network interface received damaged."),
    "tx_errors": ("waywiser_send_errors", "Packets that a network interface could not send."),
    "rx_dropped": ("waywiser_receive_drops", "Packets that were received and dropped."),
    "tx_dropped": ("waywiser_send_drops", "Packets that were dropped instead of sent."),
    "retransmitted": ("waywiser_tcp_retransmissions", "TCP segments that were sent again."),
    "symbol_error": ("waywiser_symbol_errors", "Symbol errors on an RDMA port: a bad cable or connector."),
    "port_rcv_errors": ("waywiser_port_receive_errors", "Damaged packets on an RDMA port."),
    "port_xmit_discards": ("waywiser_port_send_discards", "Packets that an RDMA port discarded: congestion."),
    "link_downed": ("waywiser_link_downs", "Times that the link of an RDMA port went down."),
    "packet_seq_err": ("waywiser_packet_sequence_errors", "NAKs for lost packets that an RDMA port received."),
    "local_ack_timeout_err": ("waywiser_ack_timeouts", "Acknowledgements that did not come in time."),
    "out_of_sequence": ("waywiser_out_of_sequence", "Packets that arrived out of sequence."),
    "rnr_nak_retry_err": ("waywiser_receiver_not_ready_retries", "Retries since the receiver was not ready."),
    "replays": ("waywiser_pcie_replays", "Packets that a GPU's PCIe link sent again."),
}
_FRESH = 0.2  # seconds: a view runs commands


class Metrics:
    """A collector for prometheus_client: every scrape takes a view. `about`: labels of waywiser_build_info."""

    def __init__(self, view: Callable[[], View], about: Mapping[str, str]) -> None:
        self._view = view
        self._about = about

    def describe(self) -> list[Any]:
        """Empty: the devices are only known when they are read."""
        return []

    def collect(self) -> Iterator[Any]:
        """All metrics of one view."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        view, labels = self._view(), ["road", "device", "direction"]
        moved = CounterMetricFamily("waywiser_road_bytes", "Bytes that a device has moved.", labels=labels)
        rates = GaugeMetricFamily("waywiser_road_bytes_per_second", "Rate since the last scrape.", labels=labels)
        for family, values in ((moved, view.sample.bytes), (rates, view.rates)):
            for key, value in values.items():
                family.add_metric(list(key), value)
            yield family
        yield from _errors(view)
        yield build_info(self._about)
        slow = GaugeMetricFamily("waywiser_slow_roads", "Links under load below 80 % of their profile.")
        slow.add_metric([], len(view.warnings))
        yield slow
        yield from _job(view)


def _errors(view: View) -> Iterator[Any]:
    """A counter for each kind of error, also for those that this machine does not count."""
    from prometheus_client.core import CounterMetricFamily

    families = {
        event: CounterMetricFamily(name, text, labels=["road", "device"]) for event, (name, text) in ERRORS.items()
    }
    for (road, device, event), count in view.sample.errors.items():
        families[event].add_metric([road, device], count)
    yield from families.values()


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


def text_of(view: View, about: Mapping[str, str]) -> str:
    """The metrics in Prometheus's format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(Metrics(lambda: view, about))
    return generate_latest(registry).decode()


def serve(view: Callable[[], View], about: Mapping[str, str], address: str, port: int) -> ScrapeServer:
    """Answers scrapes until the returned server is shut down. Raises OSError if it cannot listen there."""
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry()
    registry.register(Metrics(view, about))
    return ScrapeServer(registry, address, port, _FRESH)
