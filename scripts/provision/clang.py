"""Finds a clang with libFuzzer that compiles C++20 with the standard library of g++: 16 or newer."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from . import system_packages
from .messages import SetupError

VERSIONS = range(22, 15, -1)
_TARGET = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n'
_PROBE = f"#include <source_location>\nstd::source_location where;\n{_TARGET}"


def _works(compiler):
    """Whether this compiler compiles and links a fuzzer."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text(_PROBE)
        words = [compiler, "-std=c++20", "-fsanitize=fuzzer,address", str(source), "-o", f"{folder}/probe"]
        return subprocess.run(words, capture_output=True).returncode == 0


def _found():
    names = ["clang++", *(f"clang++-{version}" for version in VERSIONS)]
    paths = [path for path in map(shutil.which, names) if path]
    return next((path for path in paths if _works(path)), None)


def _known_to_apt(package):
    answer = subprocess.run(["apt-cache", "show", package], capture_output=True)
    return answer.returncode == 0 and bool(answer.stdout)


def ensure():
    """The compiler's path; if none works, installs the newest one from apt. Raises SetupError."""
    if compiler := _found():
        return compiler
    version = next((version for version in VERSIONS if _known_to_apt(f"clang-{version}")), None)
    if version is None:
        raise SetupError("fuzzing needs clang 16 or newer with libFuzzer, and apt knows none", code=2)
    names = (f"clang-{version}", f"libclang-rt-{version}-dev")
    system_packages.install_needed([(name, "fuzzing") for name in names])
    if compiler := _found():
        return compiler
    raise SetupError(f"clang-{version} cannot build a fuzzer", code=2)
