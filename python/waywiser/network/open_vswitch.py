"""Open vSwitch: whether it is there, whether it offloads, and whether its rules are where tc can see them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waywiser.json_fields import clean
from waywiser.look.finding import Unknown
from waywiser.network.asking import Asked

_ON = ("true", "try")
_OPTION = re.compile(r'"?([\w-]+)"?="?([^",}]*)"?')


@dataclass(frozen=True)
class OpenVSwitch:
    """`there`: None if not known, then `why`. `kind`: "kernel", or what moves the packets instead, of which tc knows no
    rules: "DPDK", "DOCA", or "userspace" if neither is named."""

    there: bool | None
    why: str = ""
    kind: str = ""
    offload: bool = False
    bridges: tuple[str, ...] = ()


def read_open_vswitch(asked: Asked, in_kernel: bool) -> OpenVSwitch:
    """What ovs-vsctl says. `in_kernel`: an interface of its kernel datapath exists."""
    here = in_kernel or asked.exists("/run/openvswitch") or asked.exists("/var/run/openvswitch")
    try:
        told = asked.said("ovs-vsctl", "--timeout=5", "get", "Open_vSwitch", ".", "other_config")
        rows = asked.json("ovs-vsctl", "--timeout=5", "--format=json", "--columns=name,datapath_type", "list", "Bridge")
    except Unknown as error:
        return OpenVSwitch(None, str(error)) if here else OpenVSwitch(False, "no sign of it")
    options = dict(_OPTION.findall(told))
    data = rows.get("data") if isinstance(rows, dict) else None
    pairs = [row for row in data if isinstance(row, list) and len(row) == 2] if isinstance(data, list) else []
    kind = "kernel"
    if options.get("doca-init") in _ON:
        kind = "DOCA"
    elif options.get("dpdk-init") in _ON:
        kind = "DPDK"
    elif any(row[1] == "netdev" for row in pairs):
        kind = "userspace"
    bridges = tuple(clean(str(row[0]), 64) for row in pairs)
    return OpenVSwitch(True, "", kind, options.get("hw-offload") == "true", bridges)
