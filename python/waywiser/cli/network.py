"""`waywiser network`: who may talk to whom, and whether the card or the processors decide it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waywiser.cli.options import AsJson
from waywiser.errors import FAILURE, InputError

_WORDS = ("show", "prove", "apply", "undo")


def network(
    what: Annotated[str, typer.Argument(metavar="[show|prove|apply|undo]", help="show if left out.")] = "show",
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Of apply: the policy. Of undo: what apply wrote. Of prove: an interface, if not all.",
        ),
    ] = None,
    as_json: AsJson = False,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="A recorded machine instead of this one.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="DIR", help="Also save all answers in this new folder.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.0, max=60.0, metavar="S", help="Time between two looks at the counters.")
    ] = 1.0,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Exit code 1 for a fault or anything unknown; with prove unless all is in hardware."
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Of prove: send nothing; the traffic of others is counted.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands; change nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Even if this may cut off your own connection.")] = False,
    software: Annotated[bool, typer.Option("--software", help="In software, also where a card could do it.")] = False,
    undo: Annotated[
        Path | None, typer.Option("--undo", metavar="FILE", help="Where apply writes how to undo it.")
    ] = None,
) -> int:
    """Show the rules that steer packets, and whether they are in hardware; prove it; apply a policy, or undo it.

    show only reads. prove sends 1,000 small packets through each rule. apply prints the commands of tc before it runs
    them.
    """
    if what not in _WORDS:
        raise InputError(f"{what!r} is none of {', '.join(_WORDS)}")
    if what != "prove" and (file is None) != (what == "show"):
        raise InputError(f"{file}: show takes no file" if file else f"{what} needs a file")
    if watch and what != "prove":
        raise InputError("--watch is for prove")
    if what == "show":
        return _show(from_, record, seconds, as_json, strict)
    if what == "prove":
        return _prove(str(file or ""), watch, from_, record, seconds, as_json, strict)
    if record:
        raise InputError("--record is for show and prove")
    assert file is not None
    from waywiser.network.asking import live_network, replayed, run_command
    from waywiser.network.traffic_control import RecordedControl, TrafficControl

    if from_ and not (what == "apply" and dry_run):
        raise InputError("--from is a recorded machine: it goes with show, prove, and apply --dry-run")
    if what == "undo":
        from waywiser.network.undoing import undo_policy

        return undo_policy(file, dry_run, as_json, TrafficControl(run_command))
    from waywiser.network.applying import Wishes, apply_policy

    asked = replayed(from_) if from_ else live_network()
    control = RecordedControl(asked) if from_ else TrafficControl(run_command)
    return apply_policy(file, Wishes(dry_run, force, software, as_json, undo), asked, control)


def _show(source: Path | None, record: Path | None, seconds: float, as_json: bool, strict: bool) -> int:
    from waywiser.look.finding import Status
    from waywiser.network.asking import live_network, replayed
    from waywiser.network.faults import name_faults, worst
    from waywiser.network.own_connection import ask_for_recording
    from waywiser.network.shown import print_steering, steering_json
    from waywiser.network.steering import look

    asked = replayed(source) if source else live_network()
    steering = look(asked, seconds)
    named = name_faults(steering)
    if record:
        ask_for_recording(asked)
        asked.save(record)
    if as_json:
        typer.echo(steering_json(steering, named))
    else:
        print_steering(steering, named)
    return FAILURE if strict and worst(named) is not Status.ok else 0


def _prove(
    interface: str, watch: bool, source: Path | None, record: Path | None, seconds: float, as_json: bool, strict: bool
) -> int:
    from waywiser.network.asking import live_network, replayed
    from waywiser.network.proof_shown import print_proofs, proofs_json
    from waywiser.network.proving import prove

    asked = replayed(source) if source else live_network()
    steering, proofs = prove(asked, interface, watch, seconds)
    if record:
        asked.save(record)
    if as_json:
        typer.echo(proofs_json(steering, proofs, asked.live))
    else:
        print_proofs(steering, proofs, asked.live)
    return FAILURE if strict and not (proofs and all(one.verdict == "hardware" for one in proofs)) else 0
