"""The table of fall-backs that a running job can show, and what is found of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from waywiser.look.finding import Finding, Status, Unknown, problem, unknown, warning
from waywiser.running import alike, between, within
from waywiser.running.evidence import Evidence


@dataclass(frozen=True)
class FallBack:
    """`look`: one line if the job shows it, else nothing; it may raise Unknown. `is_slow`: seen in what moved, not only
    in what is set."""

    id: str
    title: str
    remedy: str
    is_slow: bool
    look: Callable[[Evidence], str]


@dataclass(frozen=True)
class Named:
    """A fall-back that was found, or of which it is not known whether it is there."""

    id: str
    title: str
    remedy: str
    finding: Finding


# fmt: off
FALL_BACKS: tuple[FallBack, ...] = (
    FallBack("J01", "sockets in place of shared memory", "leave shared memory in the list, or unset the variable; "
             "containers: --ipc=host --pid=host", True, within.sockets),
    FallBack("J02", "two copies in place of one", "unset the variable; kernel.yama.ptrace_scope=0, one user namespace",
             False, within.two_copies),
    FallBack("J03", "a group's messages by UCX alone", "unset WAYWISER_MAILBOX", True, within.mailbox_off),
    FallBack("J04", "no NVLink between GPUs", "unset the variable; waywiser doctor --only D09,D10,D13,D14", True,
             within.no_nvlink),
    FallBack("J05", "TCP in place of RDMA", "unset the variable; waywiser doctor --only NIC,D01,D03", True,
             between.no_rdma),
    FallBack("J06", "a slow interface", "name the fast one: NCCL_SOCKET_IFNAME, UCX_NET_DEVICES, "
             "OMPI_MCA_btl_tcp_if_include", True, between.slow_interface),
    FallBack("J07", "reductions not in the switches", "waywiser doctor --only D53", True, between.no_collnet),
    FallBack("J08", "a plug-in that is not loaded", "put its folder into LD_LIBRARY_PATH of the ranks; NCCL_DEBUG=INFO "
             "says why", False, alike.plug_in_not_loaded),
    FallBack("J09", "ranks with other libraries", "one stack for all ranks: LD_LIBRARY_PATH, modules", False,
             alike.other_copies),
    FallBack("J10", "ranks with other settings", "pass the variables to all ranks: mpirun -x, srun --export", False,
             alike.other_settings),
)
# fmt: on
SWITCHED = FallBack("J11", "settings that take a path away", "unset what has no known reason", False, lambda _: "")


def name_fall_backs(seen: Evidence) -> list[Named]:
    """All that the job shows, in the order of the table; then the settings that none of them has named."""
    found: list[Named] = []
    for one in FALL_BACKS:
        try:
            if text := one.look(seen):
                found.append(_named(one, (problem if one.is_slow else warning)(text)))
        except Unknown as error:
            found.append(_named(one, unknown(str(error))))
    if text := alike.switched(seen, [one.finding.text for one in found]):
        found.append(_named(SWITCHED, warning(text)))
    return found


def _named(one: FallBack, finding: Finding) -> Named:
    return Named(one.id, one.title, one.remedy, finding)


def worst(found: list[Named]) -> Status:
    """Of all that were found; ok for none."""
    order = (Status.problem, Status.warning, Status.unknown)
    return next((status for status in order if any(one.finding.status is status for one in found)), Status.ok)
