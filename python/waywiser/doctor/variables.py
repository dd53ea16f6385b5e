"""D34: variables and configuration files that steer UCX, NCCL and Open MPI."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping

from waywiser.doctor import open_mpi
from waywiser.doctor.fast_paths import not_judged, switched_off
from waywiser.doctor.nccl_names import NCCL_NAMES
from waywiser.errors import InputError
from waywiser.look import machine, pci, rdma, ucx
from waywiser.look.finding import Finding, Unknown, ok, problem, warning
from waywiser.look.root import Root
from waywiser.units import parse_bytes

_FILES = {
    "/etc/nccl.conf": "NCCL_",
    "/etc/ucx/ucx.conf": "UCX_",
    "/etc/openmpi/openmpi-mca-params.conf": "",
    "/usr/share/ucx/ucx.conf": "UCX_",
}
_ASSIGNMENT = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]{1,80})\s*=\s*(.{0,200})")
_SLOW_ALONE = {"tcp", "self", "sm", "shm", "posix", "sysv", "cma", "mm"}
_GPU_TRANSPORTS = {"cuda_copy", "cuda", "gdr_copy", "all"}
_FAST_TRANSPORTS = {"posix", "sysv", "cma", "rc_verbs", "rc_mlx5", "dc_mlx5", "cuda_ipc", "ud_verbs", "ud_mlx5"}
_DEFAULTS = {"UCX_TLS": "all", "UCX_RNDV_THRESH": "auto"}
# UCX reads these, but ucx_info does not print them.
_EXTRA_UCX = {"UCX_HOME", "UCX_ROOT", "UCX_DIR", "UCX_VERSION", "UCX_CONFIG_DIR", "UCX_MODULE_DIR", "UCX_INSTALL_DIR"}


def assignments(root: Root, folder: str | None = None) -> dict[str, tuple[str, str]]:
    """Variable -> (value, where it comes from): the environment, and files that the libraries read themselves.
    `folder`: the current one of the process; None: of this process."""
    found = {}
    home = root.environment.get("HOME", "")
    files = {**_FILES, **({f"{home}/.nccl.conf": "NCCL_", f"{home}/.openmpi/mca-params.conf": ""} if home else {})}
    # UCX reads ucx.conf in these folders, too; the last one that sets a variable wins.
    if folder is None:
        folder = os.getcwd() if root.live else ""
    folders = (home, root.environment.get("UCX_CONFIG_DIR", ""), folder)
    files |= {os.path.join(one, "ucx.conf"): "UCX_" for one in folders if one}
    for file, prefix in files.items():
        if not prefix:
            prefix = "OMPI_MCA_"
        for line in (root.text(file) or "").splitlines()[:2000]:
            match = _ASSIGNMENT.fullmatch(line)
            if match:
                name = match[1] if match[1].startswith(prefix) else prefix + match[1]
                found[name] = (match[2].strip(), file)
    for name, value in root.environment.items():
        if name.startswith(("UCX_", "NCCL_", "OMPI_MCA_")) and not _set_by_launcher(name):
            found[name] = (value, "environment")
    return found


def _set_by_launcher(name: str) -> bool:
    return name.startswith(
        ("OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix", "OMPI_MCA_mpi_yield", "OMPI_MCA_initial_")
    )


def traps(root: Root) -> Finding:
    """D34."""
    found = assignments(root)
    looks = (_transports, _threshold, _devices, open_mpi.trap)
    bad = [finding.text for look in looks if (finding := look(root, found))]
    chatty, left = _chatty(found), _left_in_files(root, found)
    slips, off = _unknown_nccl(found), switched_off(root, found)
    try:
        slips += _unknown_ucx(root, found)
    except Unknown:
        if not (bad or slips or chatty or left or off):
            raise
    doubtful = [f"no such variable: {machine.named(slips)}"] if slips else []
    doubtful += [f"{machine.named(chatty)} prints a line for each message"] if chatty else []
    doubtful += off + left
    if bad or doubtful:
        return (problem if bad else warning)("; ".join([*bad, *doubtful]))
    if strange := not_judged({name: one for name, one in found.items() if not open_mpi.delivered(root, name, *one)}):
        raise Unknown(
            f"set, and not known here what it does to speed: {machine.named(strange)}; needs 'waywiser verify'"
        )
    told = [f"{name}={value}" for name, (value, _) in found.items()]
    return ok(f"known and harmless: {machine.named(told)}" if told else "no UCX_*, NCCL_* or OMPI_MCA_* is set")


def harmful(root: Root) -> dict[str, str]:
    """Variables of the environment that make this machine slow or break it, with the reason."""
    return _harmful(root, {name: found for name, found in assignments(root).items() if found[1] == "environment"})


def overruled(root: Root) -> dict[str, tuple[str, str]]:
    """Variables with a slow or broken value in a configuration file -> (default, reason). The environment must set the
    default to overrule the file."""
    found = {name: found for name, found in assignments(root).items() if found[1] != "environment"}
    return {name: (_DEFAULTS[name], why) for name, why in _harmful(root, found).items()}


def _harmful(root: Root, found: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    told = {"UCX_TLS": _transports(root, found), "UCX_RNDV_THRESH": _threshold(root, found)}
    return {name: finding.text for name, finding in told.items() if finding}


def _devices(root: Root, found: Mapping[str, tuple[str, str]]) -> Finding | None:
    """A finding if UCX_NET_DEVICES names only devices that are not here."""
    text, origin = found.get("UCX_NET_DEVICES", ("all", ""))
    here = {*rdma.devices(root), *root.names("/sys/class/net")}
    names = [part.split(":")[0].strip() for part in text.split(",") if part.strip()]
    if text.startswith("^") or "all" in names or not names or not here or any(name in here for name in names):
        return None
    return problem(f"UCX_NET_DEVICES={text} ({origin}): no such device here, so UCX finds no network")


def _chatty(found: Mapping[str, tuple[str, str]]) -> list[str]:
    """Variables that make a library write about every message."""
    levels = {"NCCL_DEBUG": {"trace"}, "UCX_LOG_LEVEL": {"debug", "trace", "req", "data", "async", "func", "poll"}}
    told = {name: found[name][0] for name in levels if name in found}
    return [f"{name}={value}" for name, value in told.items() if value.split("_")[-1].lower() in levels[name]]


def _left_in_files(root: Root, found: dict[str, tuple[str, str]]) -> list[str]:
    """One line for each configuration file with the variables that it sets."""
    lines: dict[str, list[str]] = {}
    for name, (value, origin) in found.items():
        if origin != "environment" and not open_mpi.delivered(root, name, value, origin):
            lines.setdefault(origin, []).append(f"{name}={value}")
    return [f"{file} sets for all users {machine.named(words, 6)}" for file, words in lines.items()]


def _transports(root: Root, found: Mapping[str, tuple[str, str]]) -> Finding | None:
    """A finding if UCX_TLS leaves out transports that this machine has."""
    text, origin = found.get("UCX_TLS", ("all", ""))
    if text.startswith("^") or "all" in text:
        return None
    listed = set(re.split(r"[,\s]+", text.replace("\\", "")))
    if pci.gpus(root) and not listed & _GPU_TRANSPORTS:
        return problem(f"UCX_TLS={text} ({origin}) leaves out cuda_copy: transfers of GPU memory crash or are refused")
    if listed <= _SLOW_ALONE:
        fast = _left_out(root, listed)
        if fast:
            return problem(
                f"UCX_TLS={text} ({origin}) leaves out {machine.named(sorted(fast))}, which this machine has"
            )
    return None


def _left_out(root: Root, listed: set[str]) -> set[str]:
    """Fast transports that UCX finds here and the list does not allow."""
    try:
        here = ucx.transports(root) & _FAST_TRANSPORTS
    except Unknown:
        here = {"posix", "sysv"} if root.exists("/dev/shm") else set()
    shared = {"posix", "sysv", "cma"}
    if listed & {"sm", "shm"}:
        here -= shared
    if listed & {"posix", "sysv", "mm"}:
        here -= shared
    return here - listed


def _threshold(root: Root, found: Mapping[str, tuple[str, str]]) -> Finding | None:
    """A finding if the rendezvous threshold is too high or too low for any machine."""
    text, origin = found.get("UCX_RNDV_THRESH", ("auto", ""))
    for part in text.split(","):
        value = part.rpartition(":")[2].strip()
        if value == "auto":
            continue
        try:
            size = 1 << 60 if value == "inf" else parse_bytes(value)
        except InputError:
            return problem(f"UCX_RNDV_THRESH={text} ({origin}) is not a size: UCX refuses to start")
        if size > 16 << 20:
            return problem(f"UCX_RNDV_THRESH={text} ({origin}): large messages are copied twice instead of once")
        if size < 1024:
            return problem(f"UCX_RNDV_THRESH={text} ({origin}): every small message waits for a round trip")
    return None


def _unknown_nccl(found: dict[str, tuple[str, str]]) -> list[str]:
    """NCCL variables that look like typing errors: close to a known name, but unknown."""
    strange = []
    for name in found:
        if name.startswith("NCCL_") and name[5:] not in NCCL_NAMES:
            close = difflib.get_close_matches(name[5:], NCCL_NAMES, 1, 0.8)
            if close:
                strange.append(f"{name} (NCCL_{close[0]}?)")
    return strange


def _unknown_ucx(root: Root, found: dict[str, tuple[str, str]]) -> list[str]:
    """UCX variables that the installed UCX does not know."""
    names = [name for name in found if name.startswith("UCX_") and name not in _EXTRA_UCX]
    if not names:
        return []
    known = ucx.settings(root)
    return [name for name in names if name not in known and not re.match(r"UCX_(PY|INFO|MONITOR)", name)]
