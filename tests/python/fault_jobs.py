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
from typing import Any

import gpu_fault_jobs as on_gpus
import numpy as np
from free_ports import free_ports

import waywiser as ww
from waywiser._core import Error

RANKS, VICTIM = 3, 1
LONG, SHORT = 60_000, 100  # float64: by both ranks or by UCX; in one piece of the shared ring
PATIENCE = 3.0  # of calls that wait for a rank that is stopped
DEADLINE = 80.0  # of everything
Group = ww.Group
Gpu = on_gpus.RankGpu | None
Call = Callable[[Group], bool]


def mine(group: Group, count: int = LONG) -> Any:
    return np.full(count, group.rank + 1.0)


def full(array: Any, value: float) -> bool:
    return bool((np.asarray(array) == value).all())


def each(array: Any) -> bool:
    """Whether it is ones, twos and threes, in thirds."""
    parts = np.asarray(array).reshape(RANKS, -1)
    return all(full(parts[rank], rank + 1) for rank in range(RANKS))


def messages(group: Group, count: int, send: bool) -> bool:
    """Rank 1 has messages for the others, or gets one of each."""
    to_others = [rank for rank in range(RANKS) if rank != VICTIM]
    if group.rank != VICTIM:
        if send:
            group.send(mine(group, count), VICTIM)
            return True
        return full(group.recv(np.empty(count), VICTIM), VICTIM + 1)
    for rank in to_others:
        if send and not full(group.recv(np.empty(count), rank), rank + 1):
            return False
        if not send:
            group.send(mine(group, count), rank)
    return True


def started_messages(group: Group, send: bool) -> bool:
    if group.rank == VICTIM:
        return messages(group, LONG, send)
    if send:
        group.start_send(mine(group), VICTIM).wait()
        return True
    return full(group.start_recv(np.empty(LONG), VICTIM).wait(), VICTIM + 1)


def from_any_rank(group: Group, started: bool = False, probed: bool = False) -> bool:
    """Rank 1 has messages for the others, which do not say that they want them from it."""
    if group.rank == VICTIM:
        return messages(group, LONG, send=False)
    if probed and group.probe().source != VICTIM:
        return False
    if started:
        return full(group.start_recv(np.empty(LONG), ww.ANY_SOURCE).wait(), VICTIM + 1)
    return full(group.recv(np.empty(LONG), ww.ANY_SOURCE), VICTIM + 1)


def around(group: Group) -> bool:
    right, left = (group.rank + 1) % RANKS, (group.rank + 2) % RANKS
    return full(group.sendrecv(mine(group), right, np.empty(LONG), left), left + 1)


def exchange(group: Group) -> bool:
    right, left = (group.rank + 1) % RANKS, (group.rank + 2) % RANKS
    from_left, from_right = np.empty(LONG), np.empty(LONG)
    group.neighbor_exchange(
        [ww.Exchange(left, mine(group), from_left, 1, 2), ww.Exchange(right, mine(group), from_right, 2, 1)]
    )
    return full(from_left, left + 1) and full(from_right, right + 1)


def only(group: Group, root: int, array: Any, right: Callable[[Any], bool]) -> bool:
    return right(array) if group.rank == root else array is None


def thirds() -> Any:
    return np.repeat(np.arange(1.0, RANKS + 1), LONG)


def flagged(group: Group, window: ww.Window) -> bool:
    """Each rank puts into the next one's memory, says so, and waits to hear it of the one before."""
    group.put(mine(group, SHORT), window, (group.rank + 1) % RANKS, 8)
    group.flush()
    group.signal(window, (group.rank + 1) % RANKS, 0, 1)
    group.wait(window, 0, 1)
    return full(np.asarray(window.array)[1 : SHORT + 1], (group.rank + 2) % RANKS + 1)


def together(group: Group) -> bool:
    group.barrier()
    return True


def part(group: Group) -> bool:
    found = group.split(0)
    return found is not None and full(found.all_reduce(mine(group)), 6)


def fetched(group: Group, window: ww.Window) -> bool:
    left = (group.rank + 2) % RANKS
    return full(group.get(np.empty(LONG), window, left, 8), left + 1)


BLOCKING: dict[str, Call] = {
    "barrier": together,
    "all_reduce": lambda g: full(g.all_reduce(mine(g)), 6),
    "reduce": lambda g: only(g, 0, g.reduce(mine(g), root=0), lambda a: full(a, 6)),
    "broadcast": lambda g: full(g.broadcast(mine(g), root=VICTIM), VICTIM + 1),
    "all_gather": lambda g: each(g.all_gather(mine(g))),
    "gather": lambda g: only(g, 0, g.gather(mine(g), root=0), each),
    "scatter": lambda g: full(g.scatter(thirds(), np.empty(LONG), root=VICTIM), g.rank + 1),
    "reduce_scatter": lambda g: full(g.reduce_scatter(thirds(), np.empty(LONG)), RANKS * (g.rank + 1)),
    "all_to_all": lambda g: each(g.all_to_all(np.repeat(mine(g, 1), RANKS * LONG))),
    "all_to_all_v": lambda g: each(
        g.all_to_all_v(np.repeat(mine(g, 1), RANKS * LONG), [LONG] * RANKS, np.empty(RANKS * LONG), [LONG] * RANKS)
    ),
    "neighbor_exchange": exchange,
    "split": part,
    "send": lambda g: messages(g, LONG, send=True),
    "recv": lambda g: messages(g, LONG, send=False),
    "short recv": lambda g: messages(g, SHORT, send=False),
    "recv from any rank": from_any_rank,
    "probe, then recv": lambda g: from_any_rank(g, probed=True),
    "sendrecv": around,
    "expose": lambda g: len(g.expose(mine(g)).array) == LONG,
}
STARTED: dict[str, Call] = {
    "barrier": lambda g: g.start_barrier().wait() is None,
    "all_reduce": lambda g: full(g.start_all_reduce(mine(g)).wait(), 6),
    "reduce": lambda g: only(g, 0, g.start_reduce(mine(g), root=0).wait(), lambda a: full(a, 6)),
    "broadcast": lambda g: full(g.start_broadcast(mine(g), VICTIM).wait(), VICTIM + 1),
    "all_gather": lambda g: each(g.start_all_gather(mine(g)).wait()),
    "gather": lambda g: only(g, 0, g.start_gather(mine(g), root=0).wait(), each),
    "scatter": lambda g: full(g.start_scatter(thirds(), np.empty(LONG), VICTIM).wait(), g.rank + 1),
    "reduce_scatter": lambda g: full(g.start_reduce_scatter(thirds(), np.empty(LONG)).wait(), RANKS * (g.rank + 1)),
    "all_to_all": lambda g: each(g.start_all_to_all(np.repeat(mine(g, 1), RANKS * LONG)).wait()),
    "send": lambda g: started_messages(g, send=True),
    "recv": lambda g: started_messages(g, send=False),
    "recv from any rank": lambda g: from_any_rank(g, started=True),
}
# Their windows are open before anything happens.
WINDOWS: dict[str, Callable[[Group, ww.Window], bool]] = {"put, flush, signal and wait": flagged, "get": fetched}
MODES: dict[str, dict[str, Call]] = {"blocking": BLOCKING, "started": STARTED}


def other_call(name: str, group: Group) -> bool:
    """A call that differs from the others': messages of other lengths, or another collective."""
    right, left = (group.rank + 1) % RANKS, (group.rank + 2) % RANKS
    half = LONG // 2
    if name in ("send", "recv", "short recv", "recv from any rank", "probe, then recv"):
        return messages(group, half, send=name == "send")
    if name == "sendrecv":
        return full(group.sendrecv(mine(group, half), right, np.empty(half), left), left + 1)
    if name == "neighbor_exchange":
        to_left = ww.Exchange(left, np.empty(half), np.empty(half), 1, 2)
        to_right = ww.Exchange(right, np.empty(half), np.empty(half), 2, 1)
        group.neighbor_exchange([to_left, to_right])
        return True
    if name == "barrier":
        return full(group.all_reduce(mine(group)), 6)
    return together(group)


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
        return f"then {error}" if right else "wrong"
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
