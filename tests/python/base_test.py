"""The package loads its core and turns the core's errors into exceptions with a kind."""

from __future__ import annotations

import importlib.util
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import waywiser
from waywiser import _core, errors


def test_every_failure_is_an_error_of_the_package() -> None:
    assert _core.Error is waywiser.Error and issubclass(waywiser.Error, RuntimeError)
    named = {name for name in waywiser.__all__ if name.endswith("Error") and name != "Error"}
    classes = {getattr(waywiser, name) for name in named}
    assert set(errors.BY_KIND.values()) == classes - {waywiser.InputTypeError}
    for name in named:
        error = getattr(waywiser, name)("one line")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == "one line" and again.kind == error.kind != ""
        assert isinstance(error, waywiser.Error) and type(error).__module__ == "waywiser"


@pytest.mark.parametrize(
    ("raised", "also"),
    [
        (waywiser.InputError, ValueError),
        (waywiser.InputTypeError, TypeError),
        (waywiser.InputTypeError, waywiser.InputError),
        (waywiser.DeadlineError, TimeoutError),
        (waywiser.TransferError, OSError),
    ],
)
def test_errors_are_what_programs_catch_already(raised: type[BaseException], also: type[BaseException]) -> None:
    with pytest.raises(also):
        raise raised("one line")


def test_the_core_has_an_error_for_each_kind_of_cpp() -> None:
    text = (Path(__file__).parents[2] / "src/waywiser/base/error.cpp").read_text()
    assert set(re.findall(r'case ErrorKind::\w+: return "([^"]+)"', text)) == set(errors.BY_KIND)


def test_the_core_raises_the_error_of_the_kind() -> None:
    with pytest.raises(waywiser.InputError, match=r"a\.json: ") as caught:
        _core.check_json_bounds(b"[" * 100_000, "a.json")
    assert caught.value.kind == "invalid input"
    with pytest.raises(waywiser.DeviceError):
        _core.open_virtual_gpus(1, 1 << 62, 0).allocate(0, 1 << 61)


def test_the_package_is_imported_where_the_core_is_not_built() -> None:
    source = "import sys; sys.modules['waywiser._core'] = None; import waywiser.ucx_library; print('imported')"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("imported\n", "")


def test_version_is_a_release_number() -> None:
    assert all(part.isdigit() for part in waywiser.__version__.split("."))
    assert Path(waywiser.__file__).with_name("py.typed").exists()


def test_the_stub_of_the_core_is_current(tmp_path: Path) -> None:
    stub = Path(waywiser.__file__).with_name("_core.pyi")
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "waywiser._core", "-D", "-O"]
    package = stub.parents[1]
    if importlib.util.find_spec("nanobind") is None:
        pytest.skip("there is no nanobind")
    subprocess.run([*command, tmp_path], cwd=package, check=True)
    assert (tmp_path / "_core.pyi").read_text() == stub.read_text(), f"in python/: {' '.join(command)} waywiser"


def test_what_is_linked_into_the_core_is_hidden() -> None:
    """A C++ runtime in it would else share its locales with that of NumPy, in whichever order they are loaded."""
    if (nm := shutil.which("nm")) is None:
        pytest.skip("there is no nm")
    listing = subprocess.run([nm, "-D", "--defined-only", _core.__file__], capture_output=True, text=True, check=True)
    names = [line.split()[-1] for line in listing.stdout.splitlines()]
    assert "PyInit__core" in names
    assert [name for name in names if re.match(r"_ZNK?8waywiser|cuda|ucp_", name)] == []
