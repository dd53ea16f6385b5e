"""What verbs say of this program and machine to Prometheus."""

from __future__ import annotations


def about_here() -> dict[str, str]:
    """The labels of waywiser_build_info."""
    from waywiser import __version__, _core
    from waywiser.json_fields import clean

    topology = _core.discover()
    return {"version": __version__, "fingerprint": topology.fingerprint, "machine": clean(topology.name)}
