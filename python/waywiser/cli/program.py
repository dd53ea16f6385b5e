"""The command line program: its options, its verbs, and what a failure prints.

A verb `name` is the function `name` of `waywiser/cli/name.py`, with Typer annotations; its docstring is its help.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.main

from waywiser.cli.config import apply_config
from waywiser.cli.help import VERBS
from waywiser.errors import BAD_INPUT, INTERRUPTED, Error, exit_code
from waywiser.json_fields import clean

# Verbs for monitoring tools, for which 1 and 2 have a meaning: any failure of these verbs is "unknown".
_FAILURE_CODES = {"doctor": 3}

_VERBOSE = "--verbose"
_COMPLETED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")  # the line that a shell completes
_MISTAKES = (LookupError, TypeError, AttributeError, AssertionError, RecursionError)


def _print_version(wanted: bool) -> None:
    if wanted:
        from waywiser import __version__

        print(f"waywiser {__version__}")
        raise typer.Exit


def _print_place(option: typer.CallbackParam, wanted: bool) -> None:
    if wanted:
        from waywiser import installed_library

        print(getattr(installed_library, str(option.name))())
        raise typer.Exit


def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    cmake_dir: Annotated[
        bool,
        typer.Option("--cmake-dir", callback=_print_place, is_eager=True, help="Print the folder for find_package()."),
    ] = False,
    cflags: Annotated[
        bool,
        typer.Option(
            "--cflags", callback=_print_place, is_eager=True, help="Print the flags for the C or C++ compiler."
        ),
    ] = False,
    libs: Annotated[
        bool, typer.Option("--libs", callback=_print_place, is_eager=True, help="Print the flags for the linker.")
    ] = False,
    schemas: Annotated[
        bool,
        typer.Option("--schemas", callback=_print_place, is_eager=True, help="Print the folder of the JSON Schemas."),
    ] = False,
    verbose: Annotated[bool, typer.Option(_VERBOSE, help="Show the traceback of a failure.")] = False,
) -> None:
    """Measures every path between two memories of a machine and chooses the fastest for each message size."""
    if context.invoked_subcommand is None:
        from waywiser.cli.doors import print_doors

        print_doors()


def _not_asked_for() -> None:
    """Stands in the list of verbs for a verb whose module was not imported."""


def build_app(arguments: Sequence[str]) -> typer.Typer:
    """The command line program; imports only the modules of verbs in `arguments`."""
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback(invoke_without_command=True)(_options)
    for verb, line in VERBS.items():
        function, context = _not_asked_for, None
        if verb in arguments:
            module = importlib.import_module(f"waywiser.cli.{verb}")
            function, context = getattr(module, verb), getattr(module, "CONTEXT", None)
        app.command(verb, short_help=line, context_settings=context)(function)
    return app


def build_command(arguments: Sequence[str]) -> Any:
    """The command of `build_app`, with help texts that show arguments as the verbs name them."""
    command: Any = typer.main.get_command(build_app(arguments))
    for verb in command.commands.values():
        for one in verb.params:
            if one.param_type_name == "argument":
                _show_as_named(one)
    return command


def _show_as_named(argument: Any) -> None:
    """Without typer's additions: Python types such as list[Path], braces and more dots."""
    name = argument.metavar
    shown = name if argument.required or name.startswith("[") else f"[{name}]"
    argument.display_type_rich = lambda ctx: None
    argument.get_usage_pieces = lambda ctx: [shown]


def _command(arguments: Sequence[str]) -> Any:
    """The command for these arguments, with the values of the configuration file."""
    command = build_command([*arguments, *(word for name in _COMPLETED for word in os.environ.get(name, "").split())])
    verb = next((word for word in arguments if not word.startswith("-")), "")
    if verb in VERBS:
        apply_config(command.commands[verb], verb, VERBS, os.environ)
    return command


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = str(error) or type(error).__name__
    if isinstance(error, _MISTAKES) and not isinstance(error, Error):
        text = f"an internal error of waywiser, {type(error).__name__}: {text}"
    return " ".join(text.split())


def _fail(message: str, code: int) -> int:
    print(f"waywiser: {clean(message)}", file=sys.stderr)
    return code


def _is_usage_error(error: BaseException) -> bool:
    return any(base.__name__ == "ClickException" for base in type(error).__mro__)


def _take_verbose(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether --verbose is among the arguments, and the others; those after `run` belong to its program too."""
    own = list(arguments[: arguments.index("run")]) if "run" in arguments else list(arguments)
    rest = [argument for argument in own if argument != _VERBOSE] + list(arguments[len(own) :])
    return _VERBOSE in own, rest


def run_command(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code."""
    verbose, rest = _take_verbose(arguments)
    first = next(iter(rest), "")
    try:
        result = _command(rest).main(args=rest, prog_name="waywiser", standalone_mode=False)
        if result != INTERRUPTED:
            return result if isinstance(result, int) else 0
        return _fail("interrupted", INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except Exception as error:
        if verbose:
            traceback.print_exc()
        if _is_usage_error(error):
            format_message = getattr(error, "format_message", error.__str__)
            return _fail(" ".join(str(format_message()).split()), _FAILURE_CODES.get(first, BAD_INPUT))
        return _fail(_one_line(error), _FAILURE_CODES.get(first, exit_code(error)))
