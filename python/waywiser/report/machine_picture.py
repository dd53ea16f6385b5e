"""The drawing of the machine as a picture."""

from __future__ import annotations

import importlib
import importlib.util
import io
from typing import Any


def machine_picture(topology: dict[str, Any] | None, form: str) -> bytes | None:
    """SVG or PNG (`form`: "svg" or "png"); None without a topology."""
    if topology is None or importlib.util.find_spec("waywiser.report.drawing") is None:
        return None
    buffer = io.BytesIO()
    importlib.import_module("waywiser.report.drawing").draw_topology(topology, buffer, format=form)
    return buffer.getvalue()
