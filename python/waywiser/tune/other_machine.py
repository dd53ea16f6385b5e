"""`mpirun -n 2 waywiser tune` on two machines: rank 0 measures and chooses, rank 1 takes part until it is dismissed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import waywiser._core as _core
from waywiser import stages
from waywiser.errors import InputError
from waywiser.progress import say
from waywiser.tune.campaign import Request


def take_all_cpus() -> None:
    """Undoes the launcher's binding to a core or two, so that all CPUs of this job on the machine are measured."""
    bound = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
    free = os.sched_getaffinity(0)
    if len(free) > len(bound):
        say(f"the launcher had bound this rank to {len(bound)} of {len(free)} CPUs: all are used")


def takes_part_only() -> bool:
    """Whether this process is rank 1. If so, it takes part in the measurement before this returns."""
    rank, size = _core.rank_and_size()
    if size > 2:
        raise InputError(f"tune runs alone or as two ranks on two machines; this job has {size} ranks")
    if size == 2:
        take_all_cpus()
    if rank == 0:
        return False
    # The first Ctrl-C is for rank 0.
    with stages.stopping_on_interrupt(stages.Watch(lambda *_: None), (signal.SIGINT,)):
        why_not = _core.serve_other_machine(stages.peer_program())
    say(f"rank 1 takes no part: {why_not}" if why_not else "rank 1 has taken part; results and plan are with rank 0")
    return True


@contextmanager
def the_other_machine(request: Request) -> Iterator[None]:
    """While inside, rank 1 takes part if it is on another machine."""
    if request.kind == "real" and _core.rank_and_size()[1] > 1:
        try:
            request.other_machine = _core.OtherMachine()
        except _core.Error as error:
            if getattr(error, "kind", "") != "unavailable":
                raise
            say(f"this machine alone: {error}")
    try:
        yield
    finally:
        if request.other_machine is not None:
            request.other_machine.dismiss()
