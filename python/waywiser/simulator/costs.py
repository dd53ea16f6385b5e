"""The simulator's costs beside the topology: the package's file of parts, calibrated costs, and those of `--set`."""

from __future__ import annotations

import json
import math
import re
from importlib import resources
from pathlib import Path
from typing import Any

from waywiser.errors import InputError
from waywiser.files import parse_json, read_bytes

COSTS, COSTS_VERSION = "waywiser.costs", 1
# Nominal rates of a port and direction in bytes per second.
PORTS = {"edr100": 12.5e9, "hdr200": 25e9, "ndr400": 50e9, "xdr800": 100e9, "eth40": 5e9}
# Headers of 4 KB packets, as in the machine files.
PORT_SHARE = 0.97
PORT_WORDS = f"{', '.join(PORTS)} or a rate such as 200G (Gb/s)"
_MOST_GIGABITS = 10_000


def port_rate(text: str) -> float | None:
    """Bytes per second and direction of a port by its name or rate, "ndr400" or "25G"; None: it is neither."""
    gigabits = re.fullmatch(r"(\d{1,5}(?:\.\d{1,3})?)G", text)
    if gigabits and not 0 < float(gigabits[1]) <= _MOST_GIGABITS:
        return None
    rate = float(gigabits[1]) * 1e9 / 8 if gigabits else PORTS.get(text)
    return None if rate is None else rate * PORT_SHARE


def parts() -> dict[str, Any]:
    """The file of parts of the package."""
    text = resources.files("waywiser").joinpath("simulator").joinpath("parts.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def calibrated(machine: str) -> dict[str, Any]:
    """The costs fitted to the recorded profile of a machine of the package; empty if there is none."""
    file = resources.files("waywiser").joinpath("simulator").joinpath("calibrated").joinpath(f"{machine}.json")
    if not file.is_file():
        return {}
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def read_costs(file: Path) -> dict[str, Any]:
    """The values and curves of a file of `waywiser calibrate`. Raises InputError."""
    found: dict[str, Any] = parse_json(read_bytes(file), str(file), COSTS, COSTS_VERSION)
    if not isinstance(found.get("values"), dict) or not isinstance(found.get("curves"), list):
        raise InputError(f"{file}: 'values' must be an object and 'curves' a list")
    for name, value in found["values"].items():
        cost_in(str(name), str(value), str(file))
    return found


def costs_json(values: dict[str, Any], machine: str = "", file: Path | None = None) -> str:
    """The core's input: the parts, overridden by calibrated costs (of `file` or of the machine), then by `values`."""
    fitted = read_costs(file) if file is not None else calibrated(machine)
    found = {"parts": parts(), "values": {**fitted.get("values", {}), **values}, "curves": fitted.get("curves", [])}
    return json.dumps(found)


def settings_in(texts: list[str]) -> tuple[dict[str, float], float | None]:
    """["nic=ndr400", "ucx.copy=8e-6"] -> costs, and the rate of a port (None: the machine's own)."""
    values: dict[str, float] = {}
    port: float | None = None
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set {text!r}: write NAME=VALUE, such as nic=ndr400 or ucx.copy=8e-6")
        if name == "nic":
            port = port_rate(value)
            if port is None:
                raise InputError(f"--set nic={value[:40]}: write {PORT_WORDS}")
            continue
        values[name] = cost_in(name, value, f"--set {text!r}")
    return values, port


def cost_in(name: str, value: str, what: str) -> float:
    """A cost as a finite number from 0 on; a share at most 1. Raises InputError, with `what` before it."""
    try:
        found = float(value)
    except ValueError:
        raise InputError(f"{what}: {value[:40]!r} is not a number") from None
    most = 1.0 if is_share(name) else math.inf
    if not math.isfinite(found) or not 0 <= found <= most:
        allowed = "from 0 to 1" if is_share(name) else "from 0 on"
        raise InputError(f"{what}: {name[:64]} is a number {allowed}")
    return found


def is_share(name: str) -> bool:
    """Whether a cost is a fraction of something, "pcie.share"."""
    return name.endswith("share")
