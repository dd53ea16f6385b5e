"""A report as metrics, for the textfile collector of Prometheus's node_exporter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from waywiser.doctor.report import Report
from waywiser.look.finding import Status
from waywiser.monitor.scrapes import build_info

# As the exit codes; checks that do not apply have no value.
_VALUES = {Status.ok: 0, Status.warning: 1, Status.problem: 2, Status.unknown: 3}


class ReportMetrics:
    """A collector for prometheus_client. `about`: labels of waywiser_build_info; `when`: seconds since the epoch."""

    def __init__(self, report: Report, about: Mapping[str, str], when: float) -> None:
        self._report, self._about, self._when = report, about, when

    def collect(self) -> Iterator[Any]:
        """The status of each check, the number of checks by status, and the time of the report."""
        from prometheus_client.core import GaugeMetricFamily

        checks = GaugeMetricFamily(
            "waywiser_doctor_status", "0 ok, 1 warning, 2 problem, 3 unknown.", labels=["id", "group", "title"]
        )
        for answer in self._report.answers:
            if answer.finding.status in _VALUES:
                labels = [answer.check.id, answer.check.group, answer.check.title]
                checks.add_metric(labels, _VALUES[answer.finding.status])
        yield checks
        counts = GaugeMetricFamily("waywiser_doctor_checks", "Number of checks with this status.", labels=["status"])
        for status in Status:
            counts.add_metric([status.value], self._report.count(status))
        yield counts
        yield GaugeMetricFamily("waywiser_doctor_time_seconds", "When the checks ran.", value=self._when)
        yield build_info(self._about)


def report_text(report: Report, about: Mapping[str, str], when: float) -> str:
    """The metrics in Prometheus's format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(ReportMetrics(report, about, when))
    return generate_latest(registry).decode()
