"""The package loads its core and turns the core's errors into exceptions with a kind."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import waywiser
from waywiser import _core


def test_error_type_has_a_kind() -> None:
    assert issubclass(_core.Error, RuntimeError)
    assert _core.Error.kind == ""


def test_version_is_a_release_number() -> None:
    assert all(part.isdigit() for part in waywiser.__version__.split("."))
    assert Path(waywiser.__file__).with_name("py.typed").exists()


def test_what_is_linked_into_the_core_is_hidden() -> None:
    """A C++ runtime in it would else share its locales with that of NumPy, in whichever order they are loaded."""
    if (nm := shutil.which("nm")) is None:
        pytest.skip("there is no nm")
    listing = subprocess.run([nm, "-D", "--defined-only", _core.__file__], capture_output=True, text=True, check=True)
    names = [line.split()[-1] for line in listing.stdout.splitlines()]
    assert "PyInit__core" in names
    assert [name for name in names if re.match(r"_ZNK?8waywiser|cuda|ucp_", name)] == []
