"""The doctor in real namespaces and limits, as containers and login shells set them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCTOR = [sys.executable, "-c", "from waywiser.cli import main; main()", "doctor", "--json", "--alone"]


def unshared(*flags: str) -> list[str]:
    """The beginning of a command in new namespaces; skips the test if that is not allowed."""
    command = ["unshare", *flags]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        pytest.skip(f"{' '.join(command)} is not allowed here")
    return command


def examined(command: list[str], only: str, folder: Path) -> dict[str, dict[str, str]]:
    """The answers by id, and under "" the facts."""
    done = subprocess.run([*command, "--only", only], capture_output=True, text=True, timeout=60, cwd=folder)
    value = json.loads(done.stdout)
    return {row["id"]: row for row in value["checks"]} | {"": value["facts"]}


@pytest.fixture(autouse=True)
def package_path(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    if paths:
        monkeypatch.setenv("PYTHONPATH", ":".join(paths))


def test_a_tiny_shared_memory(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"'
    command = [*unshared("-m"), "sh", "-c", script, "sh", *DOCTOR]
    found = examined(command, "D20", tmp_path)["D20"]
    assert found["status"] == "problem" and "64 KiB" in found["found"]


def test_a_limit_on_locked_memory_is_seen(tmp_path: Path) -> None:
    if not shutil.which("prlimit"):
        pytest.skip("no prlimit")
    found = examined(["prlimit", "--memlock=65536:65536", *DOCTOR], "D21", tmp_path)
    assert found[""]["locked memory"] == "65536"
    assert "64 KiB" in found["D21"]["found"] and found["D21"]["status"] in ("problem", "not applicable")


def test_ranks_in_other_namespaces_are_named(tmp_path: Path) -> None:
    files = []
    for index, prefix in enumerate(([], unshared("-i"))):
        done = subprocess.run([*prefix, *DOCTOR, "--only", "D20"], capture_output=True, text=True, timeout=60)
        files.append(tmp_path / f"{index}.json")
        files[-1].write_text(done.stdout)
    told = subprocess.run(
        [*DOCTOR, "--compare", *map(str, files)], capture_output=True, text=True, timeout=60, check=False
    )
    differences = [one["what"] for one in json.loads(told.stdout)["differences"]]
    assert "D18 namespaces of ranks on one machine" in differences
