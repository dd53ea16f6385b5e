"""The back end in C++: compiles it once against the installed PyTorch, loads it, and has what it leaves to Python."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import torch

from waywiser.errors import DeadlineError, InputError, UnavailableError
from waywiser.file_lock import held_file
from waywiser.group import Group
from waywiser.torch_backend.calls import Calls

VARIABLE = "WAYWISER_TORCH_FORM"
MODULE = "waywiser_torch"
SOURCES = Path(__file__).parent / "cpp"
_LIBRARIES = ("-Wl,--no-as-needed", "-lc10", "-ltorch_cpu", "-ltorch_python")
_SECONDS = 600  # a compiler takes 20 to 60


class Rest(Calls):
    """The calls that the back end in C++ leaves to Python. They have its lock."""

    def seconds(self) -> float:
        return self.group.timeout

    def set_seconds(self, seconds: float) -> None:
        self.group.timeout = seconds


def make(module: Any, group: Group) -> Any:
    """The back end of a group, for torch.distributed."""
    lock, rest = module.CallLock(), Rest()
    rest.attach(group, lock)
    return module.make_backend(rest, group._core.core_calls(), lock, group.rank, group.size)


def chosen() -> tuple[Any, str]:
    """The module, and why there is none: then the back end is the one in Python. Raises UnavailableError if the
    variable demands it, InputError if the variable has another value.
    """
    form = os.environ.get(VARIABLE) or "auto"
    if form not in ("auto", "cpp", "python"):
        raise InputError(f"{VARIABLE} is auto, cpp or python, not {form!r}")
    if form == "python":
        return None, f"{VARIABLE}=python"
    if form == "cpp":
        return _loaded(build()), ""
    try:
        if os.path.exists(library()):
            return _loaded(library()), ""
        return None, "the one in C++ is not compiled for this PyTorch: python -m waywiser.torch_backend does it"
    except UnavailableError as error:
        return None, str(error)


@cache
def library() -> Path:
    """Where the module of this PyTorch, this Python and these sources is, once it is compiled. Raises UnavailableError
    if there is no home.
    """
    about = (torch.__version__, torch.version.git_version, torch.version.cuda, *_options(Path()), *_LIBRARIES)
    parts = [repr(about).encode(), *(path.read_bytes() for path in sorted(SOURCES.iterdir()))]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        raise UnavailableError("this user has no home for the back end in C++: set XDG_CACHE_HOME") from None
    name = f"torch-{torch.__version__}-{sys.implementation.cache_tag}-{platform.machine()}-{key}"
    return root / "waywiser" / name / f"{MODULE}.so"


def build() -> Path:
    """Compiles the module unless it is; one process at a time does, the others wait. Raises DeadlineError, and
    UnavailableError that says in one line why it cannot be compiled.
    """
    target, until = library(), time.monotonic() + _SECONDS
    while not target.exists():
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with held_file(target.with_suffix(".lock")) as holder:
                if not holder and not target.exists():
                    _compile(target)
        except OSError as error:
            raise UnavailableError(f"the back end in C++ cannot be compiled: {error}") from None
        if holder and time.monotonic() > until:
            raise DeadlineError(f"{holder} has not compiled {target} in {_SECONDS} s")
        if holder:
            time.sleep(0.1)
    return target


def _compile(target: Path) -> None:
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), "c++", "g++", "clang++"))), None)
    if compiler is None:
        raise UnavailableError("the back end in C++ cannot be compiled: no c++, g++ or clang++ is found")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        options = (*_options(Path(torch.__file__).parent), str(SOURCES / "module.cpp"), *_LIBRARIES)
        command = [compiler, *options, "-o", str(made)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise DeadlineError(f"{compiler} has not compiled the back end in {_SECONDS} s") from None
        if done.returncode != 0:
            lines = done.stderr.splitlines() or [f"exit code {done.returncode}"]
            first = next((line for line in lines if "error" in line), lines[-1])
            raise UnavailableError(f"the back end in C++ cannot be compiled: {first.strip()}")
        made.replace(target)


def _options(torch_folder: Path) -> list[str]:
    include, abi = torch_folder / "include", int(torch._C._GLIBCXX_USE_CXX11_ABI)
    folders = (include, include / "torch/csrc/api/include", sysconfig.get_path("include"))
    return ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
            *(f"-isystem{folder}" for folder in folders), f"-L{torch_folder / 'lib'}"]  # fmt: skip


@cache
def _loaded(path: Path) -> Any:
    """Raises UnavailableError if the module cannot be loaded."""
    try:
        spec = spec_from_loader(MODULE, ExtensionFileLoader(MODULE, str(path)))
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise UnavailableError(f"{path} cannot be loaded: {error}") from None
    return module
