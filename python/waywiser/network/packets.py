"""A packet that fits a rule. Where the rule names no address, a made-up one stands: no system takes such a packet."""

from __future__ import annotations

import ipaddress
import struct

from waywiser.network.filters import Filter
from waywiser.network.policy import PROTOCOLS

_MACS = {"src_mac": "02:77:61:79:00:01", "dst_mac": "02:77:61:79:00:02"}  # administered locally: of no card
_ADDRESSES = {  # for documents: RFC 5737, RFC 3849
    ("src_ip", 4): "192.0.2.1",
    ("dst_ip", 4): "198.51.100.1",
    ("src_ip", 6): "2001:db8::1",
    ("dst_ip", 6): "2001:db8::2",
}
_PORTS = {"src_port": "49152", "dst_port": "9"}  # 9: discard
_MASKS = {"src_port_mask", "dst_port_mask"}  # the value beside them fits
_FITS = {"ct_state": "-trk", "ip_flags": "nofrag"}  # what our packets are
_KNOWN = {*_MACS, *_PORTS, *_MASKS, *_FITS, "src_ip", "dst_ip", "ip_proto", "vlan_id", "vlan_prio", "vlan_ethtype"}
_FAMILIES = {"ip": 4, "ipv4": 4, "ipv6": 6, "all": 4, "": 4}
_TEXT = b"waywiser network prove"
_LEAST = 60  # bytes of an Ethernet frame, without its checksum


def packet_for(rule: Filter) -> bytes:
    """An Ethernet frame that fits. Raises ValueError with what no packet is made for."""
    if rule.kind not in ("flower", "matchall"):
        raise ValueError(f"no packet is made for rules of {rule.kind}")
    words = rule.keys.split()
    keys = dict(zip(words[::2], words[1::2], strict=True)) if len(words) % 2 == 0 else {rule.keys: ""}
    strange = [key for key in keys if key not in _KNOWN]
    strange += [key for key, value in _FITS.items() if keys.get(key, value) != value]
    tagged = rule.protocol == "802.1Q"
    family = _FAMILIES.get(keys.get("vlan_ethtype", "") if tagged else rule.protocol)
    if strange or family is None:
        raise ValueError(f"no packet is made for {strange[0] if strange else 'protocol ' + rule.protocol}")
    try:
        return _frame(keys, tagged, family)
    except (ValueError, struct.error, OverflowError):
        raise ValueError("no packet is made for what tc prints of its match") from None


def _frame(keys: dict[str, str], tagged: bool, family: int) -> bytes:
    frame = b"".join(_mac(keys.get(key, _MACS[key])) for key in ("dst_mac", "src_mac"))
    if tagged:
        tag = int(keys.get("vlan_prio", "0")) << 13 | int(keys.get("vlan_id", "0"))
        frame += struct.pack("!HH", 0x8100, tag)
    return (frame + struct.pack("!H", 0x0800 if family == 4 else 0x86DD) + _datagram(keys, family)).ljust(_LEAST, b"\0")


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.partition("/")[0].replace(":", ""))


def _address(text: str) -> bytes:
    """The first host of a network."""
    network = ipaddress.ip_network(text, strict=False)
    return (network[1] if network.num_addresses > 2 else network[0]).packed


def _datagram(keys: dict[str, str], family: int) -> bytes:
    source, target = (_address(keys.get(key, _ADDRESSES[key, family])) for key in ("src_ip", "dst_ip"))
    told = keys.get("ip_proto", "udp")
    number = PROTOCOLS.get(told) or int(told)
    ends = [int(keys.get(key, _PORTS[key]).partition("-")[0], 0) for key in ("src_port", "dst_port")]
    length = len(_inner(number, ends, 0))
    above = source + target + struct.pack("!II", length, number)  # a pseudo-header of either family
    inner = _inner(number, ends, 0)
    if number in (PROTOCOLS["tcp"], PROTOCOLS["udp"], PROTOCOLS["icmpv6"]):
        inner = _inner(number, ends, _checksum(above + inner))
    elif number == PROTOCOLS["icmp"]:
        inner = _inner(number, ends, _checksum(inner))
    if family == 6:
        return struct.pack("!IHBB", 6 << 28, length, number, 64) + source + target + inner
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0, 64, number, 0) + source + target
    return head[:10] + struct.pack("!H", _checksum(head)) + head[12:] + inner


def _inner(number: int, ends: list[int], checksum: int) -> bytes:
    if number == PROTOCOLS["udp"]:
        return struct.pack("!4H", *ends, 8 + len(_TEXT), checksum) + _TEXT
    if number == PROTOCOLS["tcp"]:
        return struct.pack("!2H2IBBHHH", *ends, 0, 0, 5 << 4, 0x10, 0, checksum, 0) + _TEXT  # an acknowledgement
    if number == PROTOCOLS["sctp"]:
        return struct.pack("!2H2I", *ends, 0, 0) + _TEXT
    if number in (PROTOCOLS["icmp"], PROTOCOLS["icmpv6"]):
        return struct.pack("!BBHI", 0 if number == PROTOCOLS["icmp"] else 129, 0, checksum, 0) + _TEXT  # an echo reply
    return _TEXT


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
