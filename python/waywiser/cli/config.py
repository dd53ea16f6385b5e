"""The configuration file: values of options that the command line and the environment leave open.

    results = "/shared/waywiser-results"   # of every verb with this option

    [bench]                                # of one verb
    against = "openmpi"

It is the file that WAYWISER_CONFIG names; else /etc/waywiser.toml and then ~/.config/waywiser.toml, whose values win.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from waywiser.errors import InputError
from waywiser.files import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VARIABLE = "WAYWISER_CONFIG"
_SYSTEM = Path("/etc/waywiser.toml")
_LARGEST = 1 << 20


def config_files(environment: Mapping[str, str]) -> list[Path]:
    """The files that are read, the one that wins last."""
    named = environment.get(VARIABLE)
    if named:
        return [Path(named)]
    folder = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return [file for file in (_SYSTEM, Path(folder) / "waywiser.toml") if file.exists()]


def apply_config(command: Any, verb: str, verbs: Collection[str], environment: Mapping[str, str]) -> None:
    """Makes the values of the configuration files the defaults of `command`, a verb's. Raises InputError."""
    found: dict[str, Any] = {}
    for file in config_files(environment):
        found |= _values(command, verb, _read(file, verbs), str(file))
    if found:
        command.context_settings = {**command.context_settings, "default_map": found}


def _read(file: Path, verbs: Collection[str]) -> dict[str, Any]:
    try:
        table: dict[str, Any] = tomllib.loads(read_text(file, _LARGEST))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: not valid TOML: {error}") from None
    for name, value in table.items():
        if isinstance(value, dict) and name not in verbs:
            raise InputError(f"{file}: [{name}] is no verb of waywiser")
    return table


def _values(command: Any, verb: str, table: dict[str, Any], file: str) -> dict[str, Any]:
    """The values for one verb by the name of its function's parameter."""
    options = _options(command)
    found = {}
    for name, value in table.items():
        if not isinstance(value, dict) and name in options:
            found[options[name].name] = _checked(command, options[name], value, f"{file}: {name}")
    for name, value in table.get(verb, {}).items():
        if name not in options:
            raise InputError(f"{file}: [{verb}] {name}: there is no such option: it has {', '.join(sorted(options))}")
        found[options[name].name] = _checked(command, options[name], value, f"{file}: [{verb}] {name}")
    return found


def _options(command: Any) -> dict[str, Any]:
    """The long options of a verb by name, without their dashes."""
    named = [one for one in command.params if one.param_type_name == "option" and not one.is_eager]
    return {word[2:]: one for one in named for word in one.opts if word.startswith("--")}


def _checked(command: Any, option: Any, value: Any, where: str) -> Any:
    """The value as the command line would give it, if the option takes it. Raises InputError."""
    if option.is_flag != isinstance(value, bool):
        raise InputError(f"{where}: must be {'true or false' if option.is_flag else 'a text or a number'}")
    if option.multiple != isinstance(value, list):
        raise InputError(f"{where}: must be {'a list' if option.multiple else 'one value'}")
    if option.is_flag:
        return value
    parts = value if option.multiple else [value]
    if not all(isinstance(one, (str, int, float)) for one in parts):
        raise InputError(f"{where}: must be {'a list of texts' if option.multiple else 'a text or a number'}")
    words = [str(one) for one in parts]
    given = words if option.multiple else words[0]
    try:
        option.process_value(command.make_context(command.name, [], resilient_parsing=True), given)
    except Exception as error:  # of click, which is a part of newer versions of typer
        if not any(base.__name__ == "ClickException" for base in type(error).__mro__):
            raise
        raise InputError(f"{where}: {getattr(error, 'message', error)}") from None
    return given
