"""Changes rules by tc: what is there, what is ours, adding and deleting. What fails is said in tc's own words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from waywiser.errors import InputError, UnavailableError
from waywiser.look.finding import Unknown
from waywiser.network.asking import Asked, Outcome, Runner
from waywiser.network.filters import Filter, read_filters
from waywiser.network.flower import COOKIE, Entry


@dataclass(frozen=True)
class Dump:
    """What tc prints of an interface, unchanged: its qdiscs, and its rules for packets that come in."""

    qdisc: str
    rules: str

    @property
    def has_qdisc(self) -> bool:
        """Whether rules can be added."""
        return any(row.get("kind") in ("ingress", "clsact") for row in _rows(self.qdisc))

    @property
    def block(self) -> bool:
        """Whether the interface shares its rules with others."""
        return any(row.get("ingress_block") for row in _rows(self.qdisc))

    def filters(self, interface: str) -> list[Filter]:
        """The rules."""
        return read_filters(_rows(self.rules), interface, "ingress")


def _rows(text: str) -> list[dict[str, Any]]:
    try:
        value = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError):
        raise UnavailableError("tc printed no valid JSON") from None
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


class TrafficControl:
    """tc on this machine, or what stands for it in a test."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def try_command(self, words: Sequence[str]) -> Outcome:
        """Runs a command, which may fail. Raises UnavailableError if there is no tc."""
        try:
            return self._runner(words)
        except Unknown as error:
            raise UnavailableError(str(error)) from None

    def run(self, words: Sequence[str]) -> str:
        """The output of a command. Raises UnavailableError if it fails."""
        done = self.try_command(words)
        if done.code != 0:
            raise UnavailableError(f"{' '.join(words)}: {done.error or f'exit code {done.code}'}")
        return done.output

    def dump(self, interface: str) -> Dump:
        """What is there. Raises UnavailableError."""
        qdisc = self.run(("tc", "-j", "qdisc", "show", "dev", interface))
        return Dump(qdisc, self.run(("tc", "-j", "filter", "show", "dev", interface, "ingress")))

    def remove(self, entries: Sequence[Entry]) -> int:
        """Deletes those of the entries that are there, the last first. Returns how many. Raises UnavailableError."""
        there = {name: there_of(self.dump(name), name) for name in {one.interface for one in entries}}
        ours = [one for one in reversed(entries) if there[one.interface].get(key_of(one)) == one.cookie]
        for one in ours:
            self.run(one.delete())
        return len(ours)

    def remove_qdisc(self, interface: str) -> bool:
        """Removes the interface's clsact if no rule is left in it. Raises UnavailableError."""
        dump = self.dump(interface)
        outgoing = self.run(("tc", "-j", "filter", "show", "dev", interface, "egress")) if dump.has_qdisc else ""
        if not dump.has_qdisc or _rows(dump.rules) or _rows(outgoing):
            return False
        self.run(("tc", "qdisc", "del", "dev", interface, "clsact"))
        return True


Key = tuple[int, int]


def key_of(entry: Entry | Filter) -> Key:
    """Chain and priority: each of our rules has its own."""
    return entry.chain, entry.pref


def there_of(dump: Dump, interface: str) -> dict[Key, str]:
    """The cookie of the rule at each place; of others' rules whatever they have."""
    return {key_of(one): one.cookie for one in dump.filters(interface)}


def what_is_missing(entries: Sequence[Entry], dumps: dict[str, Dump], file: str) -> bool:
    """Whether the entries are still to be made; False if all are there. Raises InputError if others are in the way."""
    made = 0
    for interface, dump in dumps.items():
        there = there_of(dump, interface)
        wanted = {key_of(one): one.cookie for one in entries if one.interface == interface}
        chains = {chain for chain, _ in wanted if chain}
        for place, cookie in there.items():
            if wanted.get(place) == cookie:
                made += 1
            elif cookie.startswith(COOKIE):
                raise InputError(f"{file}: {interface} has rules of another policy: `waywiser network undo` it first")
            elif place in wanted or place[0] in chains:
                where = f"chain {place[0]} pref {place[1]}"
                raise InputError(f"{file}: {interface} has a rule of others at {where}: choose another first_priority")
        if dump.block:
            raise InputError(f"{file}: {interface} shares its rules with other interfaces (ingress_block): not changed")
    if made not in (0, len(entries)):
        raise InputError(f"{file}: only {made} of its {len(entries)} rules are there: `waywiser network undo` it first")
    return made == 0


class RecordedControl(TrafficControl):
    """The rules of a recorded machine, which cannot be changed."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(_refuse)
        self._asked = asked

    def dump(self, interface: str) -> Dump:
        """What was there when it was recorded. Raises UnavailableError."""
        try:
            rows = _rows(self._asked.said("tc", "-s", "-j", "qdisc", "show"))
            dump = Dump(json.dumps([row for row in rows if row.get("dev") == interface]), "")
            if not dump.has_qdisc:
                return dump
            rules = self._asked.said("tc", "-s", "-j", "filter", "show", "dev", interface, "ingress")
        except Unknown as error:
            raise UnavailableError(str(error)) from None
        return Dump(dump.qdisc, rules)


def _refuse(words: Sequence[str]) -> Outcome:
    raise UnavailableError(f"a recorded machine is not changed: {' '.join(words)}")
