"""Fits the simulator's costs of a machine to a measured profile, and reports the remaining error.

First fits costs (`fit`); curves (`ratio_curves`) hold the remaining error. Between the used sizes they are linear in
the logarithms of size and ratio.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from waywiser import _core
from waywiser.profile import Profile
from waywiser.simulator.calibration_errors import by_kind, errors, leave_one_out, straight_lines
from waywiser.simulator.costs import COSTS, COSTS_VERSION, parts
from waywiser.simulator.fit import fit
from waywiser.simulator.measured import Key, Measured
from waywiser.simulator.ratio_curves import Curve, curves
from waywiser.stages import Show


@dataclass
class Calibration:
    """The fitted costs, their error, and the curves for the remaining error."""

    machine: str
    fingerprint: str
    values: dict[str, float]
    curves: dict[Key, Curve] = field(default_factory=dict)
    errors: dict[str, dict[str, float]] = field(default_factory=dict)
    kinds: dict[str, dict[str, float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        fitted = {name: value for name, value in sorted(self.values.items()) if value > 0}
        source = f"calibrated to the measured profile of {self.machine}, fingerprint {self.fingerprint}"
        return {
            "schema": COSTS,
            "version": COSTS_VERSION,
            "machine": self.machine,
            "fingerprint": self.fingerprint,
            "errors": self.errors,
            "values": {name: {"value": value, "source": source} for name, value in fitted.items()},
            "curves": [
                {"path": key[0], "operation": key[1], "ratios": [[size, round(ratio, 5)] for size, ratio in points]}
                for key, points in sorted(self.curves.items())
            ],
        }

    def text(self) -> str:
        """The text of the costs file: a line for each curve, so that diffs are readable."""
        value = self.as_json()
        lines = ",\n".join("  " + json.dumps(curve) for curve in value.pop("curves"))
        return json.dumps(value, indent=1)[:-2] + f',\n "curves": [\n{lines}\n ]\n}}\n'


def calibrate(topology: Any, profile: Profile, show: Show) -> Calibration:
    """Fits on every second size and tests on the others, then fits again on all."""
    measured = Measured(topology, profile)
    costs = json.dumps({"parts": parts(), "values": {}})
    start = json.loads(_core.simulator_costs(topology, costs))
    values = fit(measured, start, 0, show)
    before, after = measured.predict({}), measured.predict(values)
    half = curves(measured, after, 0)
    found = Calibration(topology.name, topology.fingerprint, values, curves(measured, after, None))
    found.errors = {
        "before": errors(measured, before, 1),
        "costs, on the sizes that were fitted": errors(measured, after, 0),
        "costs, on the other sizes": errors(measured, after, 1),
        "costs and curves, on the other sizes": errors(measured, after, 1, half),
        "costs and curves, on the other sizes, steady points": errors(measured, after, 1, half, steady=True),
        "leave one out": leave_one_out(measured, after),
        "straight lines between the fitted sizes, no model": straight_lines(measured, 1),
    }
    found.kinds = by_kind(measured, after, 1, half)
    return found
