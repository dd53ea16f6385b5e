"""Finds missing system packages and installs only these, by apt."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from .messages import SetupError, say

LIBRARY_FOLDERS = (
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
)


def library_exists(name):
    """Whether a shared library of this file name is in one of the usual folders."""
    return any((Path(folder) / name).exists() for folder in LIBRARY_FOLDERS)


def _missing(tests):
    """Packages that must be installed, as (name, purpose)."""
    missing = []
    if not shutil.which("g++") and not shutil.which("c++"):
        missing.append(("g++", "C++ compiler"))
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        missing.append((_python_package("venv"), "virtual environments"))
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        missing.append((_python_package("dev"), "Python.h"))
    if tests and not any(Path(root, "gtest/gtest.h").exists() for root in ("/usr/include", "/usr/local/include")):
        missing.append(("libgtest-dev", "C++ tests"))
    return missing


def _python_package(part):
    """python3-venv for the system's default Python, python3.11-venv for another one in /usr/bin."""
    default = Path("/usr/bin/python3").resolve().name
    own = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return f"python3-{part}" if default == own else f"{own}-{part}"


def _apt():
    """The command prefix that may install packages, or None."""
    if not shutil.which("apt-get"):
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    if shutil.which("sudo"):
        if subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
            return ["sudo", "-n", "apt-get"]
        if sys.stdin.isatty():
            return ["sudo", "apt-get"]
    return None


def _install(apt, packages):
    """Installs; if that fails, refreshes apt's lists and tries again. Returns None or apt's last line."""
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    environment["PATH"] = (
        environment.get("PATH", "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
    )  # dpkg needs them
    command = [*apt, "install", "-y", "--no-install-recommends", *packages]
    for refresh in (False, True):
        if refresh:
            subprocess.run([*apt, "update"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode == 0:
            return None
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    return lines[-1] if lines else f"apt-get ended with {done.returncode}"


def ensure(tests, offline):
    """Installs the missing packages. Without the right to, raises SetupError with the command to run."""
    missing = _missing(tests)
    if missing:
        install_needed(missing, offline)
    if not offline and not library_exists("libhwloc.so.15"):
        _try_once("libhwloc15", "finer view of this machine")
    if tests and not offline and not shutil.which("gfortran"):
        _try_once("gfortran", "test of the Fortran module")


def ensure_program(program, package, use):
    """Installs the package of a missing program. Without the right to, raises SetupError with the command to run."""
    if not shutil.which(program):
        install_needed([(package, use)])


def install_needed(missing, offline=False):
    """`missing`: (name, purpose) of each package."""
    names = [name for name, _ in missing]
    what = ", ".join(f"{name} ({use})" for name, use in missing)
    apt = None if offline else _apt()
    if apt is None:
        raise SetupError(f"missing: {what}; run: sudo apt-get install -y {' '.join(names)}", code=2)
    say(f"installing by apt: {what}")
    problem = _install(apt, names)
    if problem:
        raise SetupError(f"apt-get could not install {' '.join(names)}: {problem}", code=2)


def _try_once(package, use):
    """Tries once to install an optional package."""
    tried = Path(f".venv/{package}-tried")
    apt = _apt() if not tried.exists() else None
    if apt is None or apt == ["sudo", "apt-get"]:
        return
    say(f"installing by apt: {package} ({use})")
    problem = _install(apt, [package])
    if problem:
        say(f"continuing without {package}: {problem}")
        tried.parent.mkdir(exist_ok=True)
        tried.touch()
