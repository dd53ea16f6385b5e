"""The packages that draw, an extra of the installation: only the report, plots and drawings need them."""

from __future__ import annotations

from importlib.util import find_spec

from waywiser.errors import UnavailableError

_PACKAGES = ("matplotlib", "plotly")


def why_no_plots() -> str:
    """Which packages are missing and how to get them; empty if all are there."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if not missing:
        return ""
    return f"not installed: {' and '.join(missing)} (pip install 'waywiser[plots]')"


def need_plots(what: str) -> None:
    """Raises UnavailableError if `what` cannot be drawn here."""
    if why := why_no_plots():
        raise UnavailableError(f"{what}: {why}")
