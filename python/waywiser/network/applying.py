"""Applies a policy: prints the commands of tc, runs them, and takes all of them back if one fails."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from waywiser.errors import Error, InputError, UnavailableError
from waywiser.files import write_text_atomically
from waywiser.look.finding import Unknown
from waywiser.look.root import Root
from waywiser.network.asking import Asked
from waywiser.network.flower import COOKIE, Entry, entries_of
from waywiser.network.interfaces import UNKNOWN, read_links
from waywiser.network.own_connection import check_own_connection, own_environment
from waywiser.network.policy import Policy
from waywiser.network.policy_reader import read_policy
from waywiser.network.steering import Steering, look
from waywiser.network.traffic_control import Dump, TrafficControl, key_of, what_is_missing
from waywiser.network.undoing import check_not_needed, file_of, kept_json

_HARDWARE = "skip_sw"


@dataclass(frozen=True)
class Wishes:
    """How to apply. `undo`: the file that undo will read; None: beside the policy."""

    dry_run: bool = False
    force: bool = False
    software: bool = False
    as_json: bool = False
    undo: Path | None = None


@dataclass(frozen=True)
class Place:
    """Where the rules of an interface go: the flag of tc, and why. `both`: in hardware and in software."""

    flag: str
    why: str
    both: bool = False


def apply_policy(
    file: Path,
    wishes: Wishes,
    asked: Asked,
    control: TrafficControl,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Prints the commands of a policy, and runs them unless `dry_run`. Returns the exit code. Raises Error."""
    policy = read_policy(file)
    entries = entries_of(policy, wishes.software)
    try:
        _check_names(policy, asked)
        if not wishes.force:
            given = own_environment(os.environ, Root(), os.getpid()) if environment is None else environment
            check_own_connection(policy, asked, given)
    except Unknown as error:
        raise UnavailableError(f"{error}: it is not known what the policy cuts off") from None
    before = {name: control.dump(name) for name in policy.interfaces}
    missing = what_is_missing(entries, before, str(file))
    places = places_of(policy, look(asked, 0.0, lambda _: None), wishes.software)
    commands = _commands(entries, before, places) if missing else []
    kept = wishes.undo or file_of(file)
    applied = bool(commands) and not wishes.dry_run
    if applied:
        check_not_needed(kept, control)
    if not wishes.as_json:
        for name, place in places.items():
            print(f"# {name}: {place.why}")
        print("".join(f"{' '.join(words)}\n" for words in commands), end="", flush=True)
    notes: list[str] = []
    if applied:
        write_text_atomically(kept, kept_json(entries, before))
        notes = [*make(entries, before, places, control), *_seen(policy, control)]
    if wishes.as_json:
        where = {name: place.why for name, place in places.items()}
        told = {"commands": [" ".join(words) for words in commands], "places": where, "notes": notes}
        print(json.dumps({**told, "applied": applied, "undo": str(kept) if applied else None}, indent=1))
    else:
        end = (
            f"undo by: waywiser network undo {kept}"
            if applied
            else ""
            if commands
            else "no change: all rules are there"
        )
        print("".join(f"{line}\n" for line in (*notes, end) if line), end="")
    return 0


def _check_names(policy: Policy, asked: Asked) -> None:
    names = {row["ifname"] for row in read_links(asked)}
    for rule in policy.rules:
        for name in (rule.on, *rule.ports, rule.mirror):
            if name and name not in names:
                raise InputError(f"{policy.file}, line {rule.line}: there is no interface {name}")


def places_of(policy: Policy, steering: Steering, software: bool) -> dict[str, Place]:
    """For each interface whether its card takes the rules."""
    found = {}
    tracked = {rule.on for rule in policy.rules if rule.new is not None}
    for name in policy.interfaces:
        one = steering.named(name)
        if one is None or not one.address:
            found[name] = Place("", "left to the kernel: it belongs to no card")
        elif one.offload == UNKNOWN:
            found[name] = Place("", "left to the kernel: it is not known whether hw-tc-offload is on")
        elif one.offload != "on":
            found[name] = Place("", f"in software: hw-tc-offload is {one.offload}")
        elif software:
            found[name] = Place("skip_hw", "in software, as --software wants")
        elif name in tracked:
            why = "in hardware and in software, which tracks new connections: hw-tc-offload is on"
            found[name] = Place("", why, True)
        else:
            found[name] = Place(_HARDWARE, "in hardware: hw-tc-offload is on")
    return found


def _seen(policy: Policy, control: TrafficControl) -> list[str]:
    """Where the rules are now, by what tc says."""
    notes = []
    for name in policy.interfaces:
        ours = [one for one in control.dump(name).filters(name) if one.cookie.startswith(COOKIE)]
        notes.append(f"{name}: {sum(one.hardware is True for one in ours)} of {len(ours)} rules are in hardware")
    return notes


def _qdiscs(before: Mapping[str, Dump]) -> dict[str, tuple[str, ...]]:
    return {name: ("tc", "qdisc", "add", "dev", name, "clsact") for name, dump in before.items() if not dump.has_qdisc}


def _commands(
    entries: Sequence[Entry], before: Mapping[str, Dump], places: Mapping[str, Place]
) -> list[tuple[str, ...]]:
    return [*_qdiscs(before).values(), *(one.add(places[one.interface].flag) for one in entries)]


def make(
    entries: Sequence[Entry], before: Mapping[str, Dump], places: Mapping[str, Place], control: TrafficControl
) -> list[str]:
    """Adds all rules. Returns a note for each interface that went to software. Raises Error; then nothing is left.

    If the card refuses one rule, all rules of its interface go to software: those in hardware come before all others,
    so a mixture would have another order than the policy. Connection tracking needs its rules in software, too.
    """
    notes = []
    try:
        for words in _qdiscs(before).values():
            control.run(words)
        for name, place in places.items():
            own = [one for one in entries if one.interface == name]
            for_card = place.both or place.flag == _HARDWARE
            refused = _try(own, place.flag, control) if for_card else ""
            if place.both and not refused:
                refused = _not_in_hardware(name, own, control)
            if refused:
                notes.append(f"{name}: in software after all, the card refuses: {refused}")
                control.remove(own)
            if refused or not for_card:
                for one in own:
                    control.run(one.add("skip_hw" if refused else place.flag))
    except (Error, KeyboardInterrupt):
        control.remove(entries)
        for name in _qdiscs(before):
            control.remove_qdisc(name)
        raise
    return notes


def _not_in_hardware(interface: str, entries: Sequence[Entry], control: TrafficControl) -> str:
    """How many of the entries the card has not; nothing if it has all."""
    there = {key_of(one) for one in control.dump(interface).filters(interface) if one.hardware}
    missing = sum(key_of(one) not in there for one in entries)
    return f"{missing} of {len(entries)} rules" if missing else ""


def _try(entries: Sequence[Entry], flag: str, control: TrafficControl) -> str:
    """What tc says of the first rule that it refuses; nothing if it takes all."""
    for one in entries:
        done = control.try_command(one.add(flag))
        if done.code != 0:
            return done.error or f"exit code {done.code}"
    return ""
