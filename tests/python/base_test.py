"""The package loads its core and turns the core's errors into exceptions with a kind."""

from __future__ import annotations

from pathlib import Path

import waywiser
from waywiser import _core


def test_error_type_has_a_kind() -> None:
    assert issubclass(_core.Error, RuntimeError)
    assert _core.Error.kind == ""


def test_version_is_a_release_number() -> None:
    assert all(part.isdigit() for part in waywiser.__version__.split("."))
    assert Path(waywiser.__file__).with_name("py.typed").exists()
