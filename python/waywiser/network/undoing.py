"""What apply keeps, and how undo brings back what tc printed before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from waywiser.errors import FAILURE, InputError, UnavailableError
from waywiser.files import read_json
from waywiser.json_fields import Node
from waywiser.network.flower import COOKIE, Entry
from waywiser.network.traffic_control import Dump, TrafficControl, key_of, there_of

SCHEMA, VERSION = "waywiser.network_undo", 1
_MOST = 10_000


@dataclass(frozen=True)
class Kept:
    """The rules that a policy made, and what tc printed of each interface before."""

    entries: tuple[Entry, ...]
    before: Mapping[str, Dump]


def file_of(policy: Path) -> Path:
    """Where apply keeps what undo needs, unless it is told another place."""
    return policy.with_name(f"{policy.name}.undo.json")


def kept_json(entries: Sequence[Entry], before: Mapping[str, Dump]) -> str:
    """What undo needs, as a JSON document."""
    names = ("interface", "pref", "chain", "protocol", "cookie")
    rows = [{name: getattr(one, name) for name in names} for one in entries]
    dumps = {name: {"qdisc": dump.qdisc, "rules": dump.rules} for name, dump in before.items()}
    return json.dumps({"schema": SCHEMA, "version": VERSION, "rules": rows, "before": dumps}, indent=1)


def read_kept(file: Path) -> Kept:
    """The file as a value. Raises InputError."""
    node = Node(read_json(file, SCHEMA, VERSION), str(file))
    entries = []
    for row in node.items("rules"):
        cookie, name = row.text("cookie", longest=64), row.text("interface", longest=16)
        if not cookie.startswith(COOKIE) or name.startswith("-"):
            raise row.refuse("is no rule that apply makes")
        protocol = row.word("protocol", ("ip", "ipv6", "all", "802.1Q"))
        pref, chain = row.integer("pref", least=1, most=65535), row.integer("chain", most=65535)
        entries.append(Entry(name, pref, chain, protocol, (), (), cookie))
    before = node.child("before").value
    if not isinstance(before, dict) or len(before) > _MOST or {one.interface for one in entries} != set(before):
        raise node.refuse('"before" must have each interface of its rules')
    dumps = {name: Node(before[name], f"{file}: before.{name}") for name in before}
    texts = {name: (one.child("qdisc").value, one.child("rules").value) for name, one in dumps.items()}
    if not all(isinstance(text, str) for pair in texts.values() for text in pair):
        raise node.refuse('"before" must hold texts')
    return Kept(tuple(entries), {name: Dump(*pair) for name, pair in texts.items()})


def check_not_needed(file: Path, control: TrafficControl) -> None:
    """Raises InputError if the file is there and is no such file, or if rules are still there that only it can undo."""
    if not file.exists():
        return
    kept = read_kept(file)
    for name in kept.before:
        try:
            there = there_of(control.dump(name), name)
        except UnavailableError:  # the interface is gone, and its rules with it
            continue
        if any(there.get(key_of(one)) == one.cookie for one in kept.entries if one.interface == name):
            raise InputError(f"{file}: its rules are still at {name}: `waywiser network undo {file}` first")


def undo_policy(file: Path, dry_run: bool, as_json: bool, control: TrafficControl) -> int:
    """Removes what apply made, and compares with what was there before. Returns the exit code. Raises Error."""
    if (beside := file_of(file)).exists():
        raise InputError(f"{file}: is the policy; undo needs what apply wrote: {beside}")
    kept = read_kept(file)
    commands: list[str] = []
    notes: list[str] = []
    for name, before in kept.before.items():
        entries = [one for one in kept.entries if one.interface == name]
        try:
            now = control.dump(name)
        except UnavailableError as error:
            notes.append(f"{name}: cannot be looked at: {error}")
            continue
        there = there_of(now, name)
        ours = [one for one in reversed(entries) if there.get(key_of(one)) == one.cookie]
        commands += [" ".join(one.delete()) for one in ours]
        if now.has_qdisc and not before.has_qdisc and (dry_run or ours):
            commands.append(f"tc qdisc del dev {name} clsact")
        if dry_run:
            continue
        control.remove(entries)
        if not before.has_qdisc and not control.remove_qdisc(name) and control.dump(name).has_qdisc:
            notes.append(f"{name}: its clsact stays, because others have put rules into it")
        if control.dump(name) != before:
            notes.append(f"{name}: tc prints something else than before apply: others have changed it meanwhile")
    _print(commands, notes, dry_run, as_json)
    return FAILURE if notes else 0


def _print(commands: list[str], notes: list[str], dry_run: bool, as_json: bool) -> None:
    if as_json:
        value = {"commands": commands, "notes": notes, "undone": bool(commands) and not dry_run}
        print(json.dumps(value, indent=1))
        return
    end = "as before: tc prints the same, byte for byte" if not dry_run and not notes else ""
    if not commands:
        end = "nothing to undo" + (f"; {end}" if end else "")
    print("\n".join(line for line in (*commands, *notes, end) if line))
