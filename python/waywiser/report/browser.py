"""Opens a page in the browser."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path

_NEEDED = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")  # without them the standard library takes a browser for terminals


def open_page(page: Path) -> str:
    """Why it cannot be opened here; empty if a browser was started."""
    if not any(os.environ.get(name) for name in _NEEDED):
        return "no display (DISPLAY, WAYLAND_DISPLAY) and no BROWSER is set"
    return "" if webbrowser.open(page.resolve().as_uri()) else "no browser could be started"
