"""Settings for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser.apply.provable import why_not_tried
from waywiser.apply.setting import Settings
from waywiser.terminal import add, print_result, table


def print_settings(settings: Settings) -> None:
    """The settings and the omitted settings with reasons, and the versions that they were checked against."""
    parts: list[RenderableType] = []
    if settings.label:
        parts.append(Text(settings.label.upper(), "bold yellow"))
    parts.append(Text(f"{settings.machine}  fingerprint {settings.fingerprint}", "bold"))
    parts.append(Text("; ".join(settings.checked_with("with ")), "dim"))
    parts.append(Text())
    if settings.settings:
        made = table("set", "why")
        shown = ""
        for one in settings.settings:
            note = "" if one.measured else " (not measured)"
            why = f"{one.why}{note}{'; ' + one.proof if one.proof else ''}"
            add(made, f"{one.name}={one.value}", "together with the line above" if why == shown else why)
            shown = why
        parts.append(made)
    else:
        parts.append(Text("nothing to set: the defaults are best here, as far as measured"))
    if settings.left_out:
        made = table("left out", "because")
        for left in settings.left_out:
            add(made, f"{left.name}={left.value}" if left.value else left.name, left.why)
        parts += [Text(), made]
    if settings.settings and not settings.proved:
        parts += [Text(), Text(f"not yet proved against the defaults: {_verify(settings)}", "dim")]
    print_result(Group(*parts))


def _verify(settings: Settings) -> str:
    """The commands that prove them."""
    targets = {one.target for one in settings.settings if not one.proof}
    gpus = any(why_not_tried(one, "openmpi", 1) and not why_not_tried(one, "ucx", 1) for one in settings.settings)
    wanted = {
        "openmpi": "openmpi" in targets or ("ucx" in targets and not gpus),
        "nccl": "nccl" in targets,
        "ucx": gpus,
    }
    return ", ".join(f"waywiser verify --with {name}" for name, there in wanted.items() if there) or "waywiser verify"
