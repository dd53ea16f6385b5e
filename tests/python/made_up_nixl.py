"""Processes that do with the back end of NIXL what NIXL does (tests/nixl/made_up_nixl.cc)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType

from rank_jobs import ROOT

import waywiser
from waywiser import _core

PLUGIN = Path(waywiser.__file__).parent / "nixl/libplugin_WAYWISER.so"
SERVED = "1.5.1"
SOURCES = ROOT / "tests/nixl"
PATIENCE = 60.0
MIB = 1 << 20
DONE, UNDER_WAY = "0", "1"
DRAM, VRAM = 0, 1
INVALID, FAILED, NOT_FOUND, MISMATCH, NOT_ALLOWED, NOT_SUPPORTED, DISCONNECTED, CANCELED = (
    "-2", "-3", "-4", "-5", "-6", "-9", "-10", "-11",
)  # fmt: skip


def program(folder: Path) -> Path:
    """Compiled once for all files of tests."""
    text = b"".join((SOURCES / name).read_bytes() for name in ("made_up_nixl.cc", "nixl_interface.hpp"))
    kept, made = ROOT / f"build/made_up_nixl-{hashlib.sha256(text).hexdigest()[:16]}", folder / "made_up_nixl"
    if not kept.exists():
        words = ["g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", str(SOURCES / "made_up_nixl.cc")]
        subprocess.run([*words, "-o", str(made), "-ldl"], check=True)
        kept.parent.mkdir(exist_ok=True)
        shutil.copy2(made, kept.with_suffix(f".{os.getpid()}"))
        kept.with_suffix(f".{os.getpid()}").replace(kept)
    shutil.copy2(kept, made)
    library(folder, SERVED)
    return made


def library(folder: Path, version: str) -> Path:
    made = folder / f"of-{version or 'none'}" / "libnixl_common.so"
    made.parent.mkdir(exist_ok=True)
    words = ["cc", "-shared", "-fPIC", f'-DVERSION="{version}"', str(SOURCES / "made_up_library.c"), "-o", str(made)]
    subprocess.run(words, check=True)
    return made


def driver(folder: Path) -> Path:
    """A folder with a CUDA driver that needs no GPU."""
    words = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", str(SOURCES / "made_up_cuda.c")]
    subprocess.run([*words, "-o", str(folder / "libcuda.so.1"), "-lrt", "-pthread"], check=True)
    return folder


class Process:
    """One process, with one agent or several; what it says on standard error is kept."""

    def __init__(self, made: Path, version: str = SERVED, plan: str = "", driver: Path | None = None) -> None:
        clean = {name: value for name, value in os.environ.items() if name != "WAYWISER_PLAN"}
        variables = {"WAYWISER_PLAN": plan} if plan else {}
        if driver:
            variables["LD_LIBRARY_PATH"] = str(driver)
        given = [str(made), str(made.parent / f"of-{version or 'none'}/libnixl_common.so"), str(PLUGIN)]
        self.child = subprocess.Popen(
            given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=clean | variables,
        )  # fmt: skip
        assert self.child.stdout
        self.first = self.child.stdout.readline().strip()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self.child.returncode is None:
            self.child.kill()
            self.child.communicate(timeout=PATIENCE)

    def ask(self, line: str) -> str:
        assert self.child.stdin and self.child.stdout
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        found = self.child.stdout.readline()
        assert found, f"died at: {line}"
        return found.strip()

    def end(self) -> list[str]:
        """Ends it in order; what it has said."""
        _, said = self.child.communicate(timeout=PATIENCE)
        assert self.child.returncode == 0, said
        return said.splitlines()

    def kill(self) -> None:
        self.child.kill()
        self.child.communicate(timeout=PATIENCE)


class Pair:
    """Two processes, each with one agent that knows the other one."""

    def __init__(self, made: Path, driver: Path | None = None) -> None:
        self.one, self.two = Process(made, driver=driver), Process(made, driver=driver)
        abouts = self.one.ask("a start"), self.two.ask("b start")
        assert self.one.ask(f"a learn b {abouts[1]}") == DONE
        assert self.two.ask(f"b learn a {abouts[0]}") == DONE
        self.about_b = abouts[1]


def share(
    owner: Process, agent: str, memory: str, bytes: int, value: int, to: Process, its_agent: str, kind: int = DRAM
) -> str:
    """A new memory of an agent, made known to another one; what stands of it in the metadata."""
    about = owner.ask(f"{agent} memory {memory} {bytes} {value} {kind}")
    assert to.ask(f"{its_agent} learn_memory {agent} {memory} {about}") == f"0 {bytes}"
    return about


def transfer(process: Process, agent: str, words: str, message: str = "") -> str:
    """Prepares, posts, waits, releases; the status."""
    status = process.ask(f"{agent} prepare {words}")
    if status != DONE:
        return status
    status = process.ask(f"{agent} post {message}")
    if status == UNDER_WAY:
        status = process.ask(f"{agent} wait")
    assert process.ask(f"{agent} release") == DONE
    return status


def plan(seconds: float, threads: int = 1, **head: object) -> str:
    """A plan for this machine with one row: between two processes, through host memory."""
    about = {"schema": "waywiser.plan", "version": 3, "fingerprint": _core.discover().fingerprint, "machine": "made up"}
    way = f"host_copy(stores=temporal,threads={threads})"
    row = {"operation": "latency", "pairs": [["host0", "host0"]], "processes": 2, "rail": "", "encrypted": False,
           "from_bytes": 0, "to_bytes": (1 << 63) - 1, "ways": [{"way": way, "ratio": 1}],
           "expected": [{"bytes": 1, "seconds": seconds}, {"bytes": 1 << 30, "seconds": seconds}],
           "why": "made up"}  # fmt: skip
    return json.dumps({**about, "backend": "host", "simulated": False, "other_nodes": [], "rows": [row], **head})
