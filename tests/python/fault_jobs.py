"""Jobs of three ranks in which something happens to rank 1: `python fault_jobs.py FAULT MODE OPERATION...`.

One process imports what ranks need and forks them, all jobs at once. Prints JSON: operation -> what each rank saw:
"right", "wrong", or the words of the error that it had; None for a rank that said nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gpu_fault_jobs as on_gpus
import numpy as np
from free_ports import free_ports
from host_fault_jobs import LONG, MODES, RANKS, VICTIM, WINDOWS, Group, mine, other_call

import waywiser as ww
from waywiser._core import Error

PATIENCE = 3.0  # of calls that wait for a rank that is stopped
DEADLINE = 80.0  # of everything

Gpu = on_gpus.RankGpu | None


def out_of_memory(call: Callable[[], bool]) -> bool:
    """The call while the process may have no more memory than it has, nor has room for an array left."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), resource.RLIM_INFINITY))
    taken = []
    try:
        with contextlib.suppress(MemoryError):
            while True:
                taken.append(np.empty(LONG))
        return call()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def victim(fault: str, name: str, group: Group, gpu: Gpu, call: Callable[[], bool], say: Callable[[str], None]) -> bool:
    """The action of rank 1 instead of the plain call."""
    if fault == "dead":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault == "late":
        time.sleep(0.4)
    elif fault == "wrong call":
        return other_call(name, group)
    elif fault == "no memory":
        if gpu is None:
            return out_of_memory(call)
        gpu.fill()
    elif fault == "raises":
        raise ValueError("a bug of the user")
    elif fault in ("interrupt", "signal") and gpu is not None:
        gpu.before_waiting = lambda: say("calling")
    elif fault in ("interrupt", "signal"):
        say("calling")
    return call()


def ready(group: Group, gpu: Gpu, mode: str, name: str) -> Callable[[], bool]:
    """The call, whose window is open and whose GPU is set up."""
    if gpu is not None:
        on_gpus.set_up(group, gpu, name)
        return lambda: on_gpus.CALLS[mode][name](group, gpu)
    if name in WINDOWS:
        window = group.expose(np.append(0.0, mine(group)))
        return lambda: WINDOWS[name](group, window)
    return lambda: MODES[mode][name](group)


def in_group(group: Group, gpu: Gpu, fault: str, mode: str, name: str, say: Callable[[str], None], go: int) -> str:
    """The result that this rank sees."""
    heard: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    call = ready(group, gpu, mode, name)
    group.barrier()
    group.timeout = PATIENCE if fault in ("stopped", "wrong call") else DEADLINE / 2
    if group.rank == VICTIM:
        right = victim(fault, name, group, gpu, call, say)
    else:
        os.read(go, 1)
        right = call()
    try:
        if name != on_gpus.LAST:
            group.barrier()  # ranks that needed nothing from rank 1 learn of the fault here
    except Error as error:
        return f"then {type(error).__name__}: {error}" if right else "wrong"
    missed = fault == "signal" and group.rank == VICTIM and not heard
    return "right" if right and not missed else "wrong"


def rank_main(fault: str, mode: str, name: str, out: int, go: int) -> None:
    def say(words: str) -> None:
        os.write(out, f"{words}\n".encode())

    try:
        gpu = on_gpus.RankGpu(int(os.environ["WAYWISER_RANK"])) if mode in on_gpus.CALLS else None
        with ww.join(gpus=gpu.gpus if gpu else None) as group:
            saw = in_group(group, gpu, fault, mode, name, say, go)
    except BaseException as error:
        saw = f"{type(error).__name__}: {error}"
    say(saw)


def variables(mode: str) -> dict[str, str]:
    """A launcher's variables that are the same at all ranks of a job."""
    told = {"WAYWISER_SIZE": str(RANKS), "WAYWISER_LOCAL_SIZE": str(RANKS), "WAYWISER_JOB": os.urandom(8).hex()}
    if mode == on_gpus.APART:
        told |= {"WAYWISER_ROOT": f"127.0.0.1:{free_ports(1)}", "WAYWISER_SECRET": os.urandom(16).hex()}
        told["WAYWISER_LOCAL_SIZE"] = "1"
    return told


class Job:
    """Three ranks, each with a pipe for its reports."""

    def __init__(self, fault: str, mode: str, name: str) -> None:
        self.name, self.fault = name, fault
        self.said: list[list[str]] = [[] for _ in range(RANKS)]
        self.pipes: dict[int, int] = {}  # pipe of a rank -> rank
        self.pids: list[int] = []
        go, self.go = os.pipe()
        told = variables(mode)
        for rank in range(RANKS):
            reads, writes = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(reads)
                os.close(self.go)
                os.environ.update({**told, "WAYWISER_RANK": str(rank), "WAYWISER_LOCAL_RANK": str(rank)})
                if mode == on_gpus.APART:
                    os.environ.update({"WAYWISER_MACHINE": str(rank), "WAYWISER_LOCAL_RANK": "0"})
                try:
                    rank_main(fault, mode, name, writes, go)
                finally:
                    os._exit(0)
            os.close(writes)
            self.pipes[reads] = rank
            self.pids.append(pid)
        os.close(go)
        if fault not in ("interrupt", "signal"):
            os.write(self.go, bytes(RANKS))

    def hear(self, pipe: int) -> None:
        """Takes the report of a rank; None if the rank has ended."""
        rank = self.pipes[pipe]
        words = os.read(pipe, 1 << 16).decode()
        if not words:
            del self.pipes[pipe]
            os.close(pipe)
        for line in words.splitlines():
            calling = line == "calling"
            if calling:
                os.kill(self.pids[VICTIM], signal.SIGINT if self.fault == "interrupt" else signal.SIGUSR1)
            else:
                self.said[rank].append(line)
            # The others come when the handler is sure to run, or when the rank has been interrupted.
            if (self.fault == "signal" and calling) or (self.fault == "interrupt" and not calling and rank == VICTIM):
                os.write(self.go, bytes(RANKS))
        if self.fault == "stopped" and set(self.pipes.values()) == {VICTIM}:
            os.kill(self.pids[VICTIM], signal.SIGKILL)

    def end(self) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(self.go)


def calls_of(mode: str) -> list[str]:
    if mode in on_gpus.CALLS:
        return list(on_gpus.CALLS[mode])
    return [*MODES[mode], *(WINDOWS if mode == "blocking" else [])]


def main(fault: str, mode: str, names: list[str]) -> None:
    jobs = [Job(fault, mode, name) for name in names or calls_of(mode)]
    end = time.monotonic() + DEADLINE
    while any(job.pipes for job in jobs) and time.monotonic() < end:
        listening = {pipe: job for job in jobs for pipe in job.pipes}
        ready, _, _ = select.select(list(listening), [], [], 1)
        for pipe in ready:
            listening[pipe].hear(pipe)
    for job in jobs:
        job.end()
    print(json.dumps({job.name: ["; ".join(said) or None for said in job.said] for job in jobs}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
