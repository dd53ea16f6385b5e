"""Checks of what kind a network is, and what it can do itself: reduction in the switch, tag matching in the card."""

from __future__ import annotations

from waywiser.doctor.variables import assignments
from waywiser.look import in_network, machine, nccl_log, networks, rdma
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, unknown, warning
from waywiser.look.root import Root

_COLLNET, _LOG, _PLUG_IN = "NCCL_COLLNET_ENABLE", "NCCL_DEBUG_FILE", "NCCL_NET_PLUGIN"
_UCC = ("UCC_CL_BASIC_TLS", "OMPI_UCC_CL_BASIC_TLS", "UCC_TLS")
_TAGS = ("UCX_RC_MLX5_TM_ENABLE", "UCX_DC_MLX5_TM_ENABLE")
# Kind -> what does not work there. docs/network.md has the sources.
_LIMITS = {
    networks.IWARP: "UCX has no transport on it",
    networks.EFA: "no mechanism of ours uses its protocol",
    networks.SLINGSHOT: "UCX has no transport for its card",
    networks.ROCE1: "no router forwards its packets",
}
_ON = ("y", "yes", "on", "1", "true")


def reduction(root: Root) -> Finding:
    """D53."""
    ports = in_network.infiniband(root)
    if not ports:
        return absent("no active InfiniBand port")
    set_ = {name: value for name, (value, _) in assignments(root).items()}
    set_ |= {name: root.environment[name] for name in _UCC if name in root.environment}
    by_nccl = set_.get(_COLLNET, "0") not in ("", "0")
    by_ucc = next((name for name in _UCC if "sharp" in set_.get(name, "").split(",") and set_[name][0] != "^"), "")
    plug_ins = {"NCCL": in_network.nccl_plug_in(root), "UCC": in_network.ucc_plug_in(root)}
    if not by_nccl and not by_ucc and not any(plug_ins.values()):
        return absent("no variable asks for it, and neither NCCL nor UCC has a plug-in for it")
    if by_nccl and set_.get(_PLUG_IN) == "none":
        return problem(f"{_COLLNET}=1, but {_PLUG_IN}=none: NCCL loads no plug-in and takes its rings")
    if by_nccl and not plug_ins["NCCL"]:
        return problem(f"{_COLLNET}=1, but no libnccl-net with CollNet is found: NCCL takes its rings")
    if by_ucc and not plug_ins["UCC"]:
        return problem(f"{by_ucc} names sharp, but UCC has no libucc_tl_sharp.so")
    if not in_network.manager(root, ports[0]):
        if by_nccl or by_ucc:
            return problem(f"{_COLLNET if by_nccl else by_ucc} asks for it, but no sharp_am serves {ports[0].name}")
        return absent(f"no sharp_am serves {ports[0].name}: its switches do not add")
    if by_nccl:
        return _taken(root, set_.get(_LOG, ""))
    has = machine.named(name for name, file in plug_ins.items() if file)
    if by_ucc:
        return unknown(
            f"all is there for {by_ucc}; needs UCC's own log to say that it is taken: SHARP_COLL_LOG_LEVEL=3"
        )
    return ok(f"sharp_am serves {ports[0].name}, and the plug-in of {has} is there; nothing asks for it")


def _taken(root: Root, log: str) -> Finding:
    found = in_network.taken(root, log) if log.startswith("/") and "%" not in log else None
    if found is None:
        raise Unknown(f"sharp_am and plug-in are there; needs a log of NCCL: {nccl_log.HOW_TO_LOG}")
    if not found[0]:
        why = nccl_log.why_no_collnet(root, log) or "NCCL took its rings"
        return warning(f"{_COLLNET}=1, and {log} has no connection via COLLNET: {why}")
    connected = f"{found[0]} connections via COLLNET/{found[1]} in {log}"
    by_collnet, every = nccl_log.counted_by_collnet(root, log)
    if not every:
        return ok(f"NCCL takes it: {connected}; with NCCL_DEBUG_SUBSYS=TUNING it would count the all-reduces")
    if not by_collnet:
        return warning(f"{connected}, and none of {every} all-reduces ran by it: NCCL takes others for their sizes")
    return ok(f"NCCL takes it for {by_collnet} of {every} all-reduces: {connected}")


def tag_matching(root: Root) -> Finding:
    """D54."""
    if not rdma.devices(root):
        return absent("no RDMA device")
    asked = [name for name in _TAGS if root.environment.get(name, "").lower() in _ON]
    found = {name: most for name, most in in_network.tags(root).items() if most}
    if not found and asked:
        return problem(f"{asked[0]} is on, and no card here matches tags")
    if not found:
        return absent("no card here matches tags")
    told = machine.named(f"{name} up to {most} tags" for name, most in found.items())
    return ok(f"{told}; {'on by ' + asked[0] if asked else 'off, as UCX does by default'}")


def kinds(root: Root) -> Finding:
    """D55."""
    found = networks.networks(root)
    if not found:
        return absent("no network is up")
    told = machine.named(f"{name} {kind}" for name, kind in found)
    limited = dict.fromkeys(kind for _, kind in found if kind in _LIMITS)
    if not limited:
        return ok(told)
    fast = any(kind in (networks.INFINIBAND, networks.ROCE2) for _, kind in found)
    instead = "" if fast or list(limited) == [networks.ROCE1] else "; our groups use TCP"
    return warning(f"{told}: {', '.join(f'{kind}: {_LIMITS[kind]}' for kind in limited)}{instead}")
