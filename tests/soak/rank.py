"""One rank of a job of the soak: random operations until rank 0 says that it is enough, and perhaps one fault.

The first argument is JSON: seed, seconds, largest, timeout, folder, fault, gpus. What it saw goes to folder/rank-R.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from operations import HostArrays, HostProgram, Program, WrongResult

import waywiser as ww

BLOCK = 25  # operations between two looks at the clock


def resident() -> int:
    """Bytes of memory of its own, without freed memory that the allocator keeps for later."""
    ctypes.CDLL(None).malloc_trim(0)
    fields = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in fields if line.startswith(("Private_Dirty", "Private_Clean")))


def usage() -> dict[str, int]:
    """What may not grow: memory, descriptors, threads, mappings of shared memory."""
    return {
        "memory": resident(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "shared": sum("/dev/shm" in line or "memfd" in line for line in Path("/proc/self/maps").open()),
    }


class Fault:
    """What happens to this rank, once, some milliseconds after its operation number `at` has begun."""

    def __init__(self, wanted: dict[str, Any] | None) -> None:
        self.wanted = wanted or {"kind": "none", "at": -1}

    def before(self, number: int, group: ww.Group) -> None:
        kind = self.wanted["kind"]
        if kind == "alarms" and number == 0:
            signal.signal(signal.SIGALRM, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
            atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
        if number != self.wanted["at"]:
            return
        if kind == "raise":
            raise RuntimeError("made up")
        if kind == "wrong_call":
            group.all_reduce(np.zeros(77, np.int8), op="max")
        if kind in ("kill", "stop", "interrupt"):
            threading.Timer(self.wanted["after"], self._strike, [kind]).start()

    def _strike(self, kind: str) -> None:
        mine = os.getpid()
        if kind == "stop" and self.wanted["stopped"]:
            words = ["sh", "-c", f"sleep {self.wanted['stopped']}; kill -CONT {mine}"]
            subprocess.Popen(words, start_new_session=True)
        numbers = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "interrupt": signal.SIGINT}
        os.kill(mine, numbers[kind])


def program_for(group: ww.Group, gpus: ww.Gpus | None, wanted: dict[str, Any]) -> Program:
    if gpus is not None:
        from gpus import gpu_program

        return gpu_program(group, gpus, wanted)
    return HostProgram(group, wanted["seed"], wanted["largest"], HostArrays())


def work(group: ww.Group, program: Program, wanted: dict[str, Any], report: Any) -> None:
    begun = time.monotonic()
    fault = Fault(wanted["fault"] if wanted["fault"] and wanted["fault"]["rank"] == group.rank else None)
    go_on = np.ones(1, np.int64)
    while go_on[0]:
        for _ in range(BLOCK):
            fault.before(program.number, group)
            program.step()
        say(report, operations=program.number, at=time.monotonic() - begun, **usage())
        last = wanted["fault"]["at"] if wanted["fault"] else 0
        go_on[0] = time.monotonic() - begun < wanted["seconds"] or program.number <= last + BLOCK
        group.broadcast(go_on, root=0)


def say(report: Any, **words: Any) -> None:
    report.write(json.dumps(words) + "\n")
    report.flush()


def end(*_: object) -> None:
    """The launcher ends ranks that have not noticed the failure of another one within its grace."""
    sys.exit(128 + signal.SIGTERM)


def main() -> None:
    wanted = json.loads(sys.argv[1])
    signal.signal(signal.SIGTERM, end)
    with Path(wanted["folder"], f"rank-{os.environ['WAYWISER_RANK']}").open("w") as report:
        try:
            gpus = ww.find_gpus(virtual=2) if wanted["gpus"] else None
            with ww.join(timeout=wanted["timeout"], gpus=gpus) as group:
                work(group, program_for(group, gpus, wanted), wanted, report)
            say(report, end="done")
        except WrongResult as error:
            say(report, end="wrong", words=str(error))
            raise
        except BaseException as error:
            say(report, end="error", words=f"{type(error).__name__}: {error}")
            raise


if __name__ == "__main__":
    main()
