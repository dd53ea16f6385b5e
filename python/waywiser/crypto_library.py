"""Finds OpenSSL's libcrypto for the core: the loader's, or that of this Python if it has its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_VARIABLE = "WAYWISER_LIBCRYPTO"
_FILES = ("libcrypto.so.3", "libcrypto.so.1.1")


def select_libcrypto() -> None:
    """Sets WAYWISER_LIBCRYPTO to it, for the core of this process and of its children; loads nothing."""
    if os.environ.get(_VARIABLE):
        return
    for name in _FILES:
        path = Path(sys.base_prefix, "lib", name)
        if path.exists():
            os.environ[_VARIABLE] = str(path)
            return
