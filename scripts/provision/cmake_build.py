"""Configures with CMake and builds with Ninja, into build/."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .build_progress import run_ninja
from .messages import SetupError, say
from .python_environment import PYTHON, ROOT, VENV, for_builds

BUILD = ROOT / "build"


def _tool(name):
    """A program from .venv, from the base interpreter of .venv, or from PATH."""
    base = Path(os.environ.get("WAYWISER_PYTHON") or sys.executable)
    folders = [str(VENV / "bin"), str(base.absolute().parent), str(base.resolve().parent), os.environ.get("PATH", "")]
    found = shutil.which(name, path=":".join(folders))
    if found is None:
        raise SetupError(f"{name} is missing: pip install {name}")
    return found


def _configure(folder, options):
    """Runs CMake if the options changed or nothing is configured; Ninja reruns it if CMake files change."""
    stamp_file = folder / "waywiser-configure.json"
    stamp = json.dumps([str(ROOT), for_builds(), options])
    if (folder / "build.ninja").exists() and stamp_file.exists():
        if stamp_file.read_text() == stamp:
            return
        if json.loads(stamp_file.read_text())[0] != str(ROOT):
            shutil.rmtree(folder)
    settings = dict(options, Python_EXECUTABLE=str(PYTHON), CMAKE_MAKE_PROGRAM=_tool("ninja"))
    command = [_tool("cmake"), "-S", str(ROOT), "-B", str(folder), "-G", "Ninja"]
    command += [f"-D{name}={value}" for name, value in settings.items()]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
        raise SetupError("cmake failed, see above")
    for line in done.stdout.splitlines():
        if "waywiser: " in line:
            say(line.partition("waywiser: ")[2])
    stamp_file.write_text(stamp)


def _ninja(folder, targets):
    jobs = len(os.sched_getaffinity(0))
    if run_ninja([_tool("ninja"), "-C", str(folder), f"-j{jobs}", *targets]) != 0:
        raise SetupError("the build failed, see above")


def configure(cuda, tests):
    """Prepares build/; once requested, the tests stay part of it, so that `make tune` and `make test` share it."""
    marker = BUILD / "with-tests"
    if tests and not marker.exists():
        BUILD.mkdir(exist_ok=True)
        marker.touch()
    option = "ON" if marker.exists() else "OFF"
    options = {"WAYWISER_CUDA": cuda, "WAYWISER_TESTS": option, "WAYWISER_UNITY": "ON"}
    options["WAYWISER_OPTIMIZATION"] = os.environ.get("WAYWISER_OPTIMIZATION", "-O3")
    _configure(BUILD, options)


def configure_for_lint(cuda):
    """Writes commands for clang-tidy into a separate folder; it too reads a header once for many files."""
    options = {"WAYWISER_CUDA": cuda, "WAYWISER_TESTS": "OFF", "WAYWISER_UNITY": "ON"}
    options["CMAKE_DISABLE_PRECOMPILE_HEADERS"] = "ON"  # they would hide that a file does not include what it needs
    _configure(BUILD / "lint", options)


def build(tests, slow_tests, benchmarks):
    """Builds the package, and the tests, what slow tests need, and the benchmarks on request."""
    if not (BUILD / ".ninja_log").exists():
        say("building (the first time takes minutes)")
    targets = ["waywiser_package"]
    targets += ["waywiser_tests"] if tests else []
    targets += ["waywiser_slow_tests"] if slow_tests else []
    targets += ["waywiser_benchmarks"] if benchmarks else []
    _ninja(BUILD, targets)


def build_sanitized(sanitizer, core_only):
    """Builds the C++ tests alone, or those of the core, with `sanitizer`, into build/<sanitizer>."""
    folder = BUILD / sanitizer
    settings = {
        "WAYWISER_CUDA": "OFF",
        "WAYWISER_TESTS": "ON",
        "WAYWISER_PYTHON": "OFF",
        "WAYWISER_SANITIZE": sanitizer,
        "WAYWISER_CORE_ONLY": "ON" if core_only else "OFF",
        "WAYWISER_UNITY": "ON",
    }
    _configure(folder, settings)
    say(f"building the C++ tests with the {sanitizer} sanitizer")
    _ninja(folder, ["waywiser_tests"])


def build_fuzzers(compiler):
    """Builds the fuzzers of tests/fuzz with clang, into build/fuzz."""
    folder = BUILD / "fuzz"
    settings = {
        "CMAKE_CXX_COMPILER": compiler,
        "WAYWISER_CUDA": "OFF",
        "WAYWISER_PYTHON": "OFF",
        "WAYWISER_SANITIZE": "address",
        "WAYWISER_FUZZ": "ON",
        "WAYWISER_FUZZ_OPTIMIZATION": os.environ.get("WAYWISER_FUZZ_OPTIMIZATION", "-O1"),
        "WAYWISER_UNITY": "ON",
    }
    _configure(folder, settings)
    say(f"building the fuzzers with {Path(compiler).name}")
    _ninja(folder, ["waywiser_fuzz"])
