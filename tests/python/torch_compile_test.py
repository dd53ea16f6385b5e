"""The back end of torch.distributed in C++: compiled when asked, or one line that says why not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rank_jobs import HAS_TORCH, runtime_folder

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
WHY = "import waywiser.torch_backend as b; print(repr(b.why_python()))"


def python(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, output, last line of errors."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=280,
                          env={**os.environ, **environment})  # fmt: skip
    return done.returncode, done.stdout, (done.stderr.splitlines() or [""])[-1]


@pytest.mark.parametrize(("form", "words"), [
    ("python", "WAYWISER_TORCH_FORM=python"),
    ("", "the one in C++ is not compiled for this PyTorch: python -m waywiser.torch_backend does it"),
])  # fmt: skip
def test_it_says_why_it_is_the_one_in_python(form: str, words: str, tmp_path: Path) -> None:
    shown = python("-c", WHY, WAYWISER_TORCH_FORM=form, XDG_CACHE_HOME=str(tmp_path))
    assert shown == (0, f"{words!r}\n", "")


def test_another_form_is_refused() -> None:
    code, _, error = python("-c", WHY, WAYWISER_TORCH_FORM="rust")
    assert code != 0 and error.endswith("WAYWISER_TORCH_FORM is auto, cpp or python, not 'rust'")


def test_a_compiler_that_fails_is_named_in_one_line(tmp_path: Path) -> None:
    compiler = tmp_path / "broken"
    compiler.write_text("#!/bin/sh\necho 'x.hpp:1: fatal error: no such header' >&2\nexit 1\n")
    compiler.chmod(0o755)
    environment = {"CXX": str(compiler), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = "the back end in C++ cannot be compiled: x.hpp:1: fatal error: no such header"
    assert python("-m", "waywiser.torch_backend", **environment) == (1, "", f"waywiser: {words}")
    code, _, error = python("-c", WHY, WAYWISER_TORCH_FORM="cpp", **environment)
    assert code != 0 and error.endswith(words)


def test_a_module_that_cannot_be_loaded_leaves_the_one_in_python(tmp_path: Path) -> None:
    where = "from waywiser.torch_backend import compiled; print(compiled.library())"
    library = Path(python("-c", where, XDG_CACHE_HOME=str(tmp_path))[1].strip())
    library.parent.mkdir(parents=True)
    library.write_text("no library\n")
    code, shown, _ = python("-c", WHY, XDG_CACHE_HOME=str(tmp_path), WAYWISER_TORCH_FORM="auto")
    assert code == 0 and f"{library} cannot be loaded" in shown
