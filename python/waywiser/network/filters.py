"""The rules of an interface, as `tc -s -j filter show` prints them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from waywiser.json_fields import clean

_MOST = 100_000
_FOR_CARDS = ("flower", "matchall")


@dataclass(frozen=True)
class Filter:
    """One rule. `hardware`: True "in_hw", False "not_in_hw", None: tc says neither. Packets of its first action."""

    interface: str
    direction: str
    chain: int
    pref: int
    protocol: str
    kind: str
    handle: str
    keys: str
    actions: tuple[str, ...]
    skip_sw: bool
    skip_hw: bool
    hardware: bool | None
    packets: int
    hardware_packets: int
    software_packets: int
    cookie: str = ""

    @property
    def for_cards(self) -> bool:
        """Whether a card could carry it out: nobody forbids it, and it is no program."""
        return self.kind in _FOR_CARDS and not self.skip_hw

    @property
    def targets(self) -> list[str]:
        """The ports by which its packets leave."""
        words = [action.split(" ") for action in self.actions]
        return [one[3] for one in words if len(one) == 4 and one[:3] == ["mirred", "redirect", "egress"]]

    @property
    def name(self) -> str:
        """Where it is: "eth2 ingress pref 10"."""
        chain = f" chain {self.chain}" if self.chain else ""
        return f"{self.interface} {self.direction} pref {self.pref}{chain}"


def read_filters(value: Any, interface: str, direction: str) -> list[Filter]:
    """The rules among the entries of tc; those without a handle only announce a priority. Raises ValueError."""
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > _MOST:
        raise ValueError("not a list of rules")
    rows = [row for row in value if isinstance(row, dict) and isinstance(row.get("options"), dict)]
    return [_read(row, interface, direction) for row in rows if "handle" in row["options"] or "fh" in row["options"]]


def _read(row: dict[str, Any], interface: str, direction: str) -> Filter:
    options: dict[str, Any] = row["options"]
    actions = [one for one in options.get("actions") or [] if isinstance(one, dict)]
    stats = actions[0].get("stats") if actions else None
    stats = stats if isinstance(stats, dict) else {}
    skip_sw, in_hw = bool(options.get("skip_sw")), bool(options.get("in_hw"))
    packets = _whole(stats.get("packets"))
    split = "hw_packets" in stats or "sw_packets" in stats
    hardware = _whole(stats.get("hw_packets")) if split else packets if skip_sw and in_hw else 0
    return Filter(
        interface,
        direction,
        _whole(row.get("chain")),
        _whole(row.get("pref")),
        _word(row.get("protocol")),
        _word(row.get("kind")),
        _word(options.get("handle", options.get("fh"))),
        " ".join(f"{_word(key)} {_word(one)}" for key, one in _keys(options)),
        tuple(_action(one) for one in actions),
        skip_sw,
        bool(options.get("skip_hw")),
        True if in_hw else False if options.get("not_in_hw") else None,
        packets,
        hardware,
        max(0, packets - hardware),
        next((_word(one["cookie"]) for one in actions if "cookie" in one), ""),
    )


def _keys(options: dict[str, Any]) -> list[tuple[str, Any]]:
    keys = options.get("keys")
    return [(key, one) for key, one in keys.items() if key != "eth_type"] if isinstance(keys, dict) else []


def _action(action: dict[str, Any]) -> str:
    kind, control = _word(action.get("kind")), action.get("control_action")
    if kind == "mirred":
        told = f"{_word(action.get('mirred_action'))} {_word(action.get('direction'))} {_word(action.get('to_dev'))}"
        return f"mirred {told}"
    does = _word(control.get("type")) if isinstance(control, dict) else ""
    return f"{kind} {does}".strip()


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _word(value: Any) -> str:
    if isinstance(value, dict) and {"start", "end"} <= value.keys():  # a range of ports
        return f"{_word(value['start'])}-{_word(value['end'])}"
    if isinstance(value, dict) and value and all(isinstance(one, bool) for one in value.values()):  # flags
        return ",".join(("" if is_set else "no") + clean(key, 20) for key, is_set in value.items())
    return clean(str(value), 80) if isinstance(value, (str, int, float)) else "..." if value else ""
