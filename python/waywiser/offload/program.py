"""Programs of the CUDA driver API that use the GPUs of a server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from waywiser.errors import InputError, UnavailableError

SHIM = Path(__file__).parents[1] / "shim"  # the folder of the libcuda.so.1 that forwards


def settings_of(address: str, key: Path | None, data_plain: bool) -> dict[str, str]:
    """The variables by which a program finds that library, and the library the server.

    Raises UnavailableError if it was not built.
    """
    if not (SHIM / "libcuda.so.1").exists():
        raise UnavailableError(f"this package has no {SHIM / 'libcuda.so.1'}")
    others = os.environ.get("LD_LIBRARY_PATH")
    settings = {"LD_LIBRARY_PATH": f"{SHIM}{os.pathsep + others if others else ''}", "WAYWISER_REMOTE": address}
    if key is not None:
        settings["WAYWISER_REMOTE_KEY"] = str(key.absolute())
    if data_plain:
        settings["WAYWISER_REMOTE_DATA_PLAIN"] = "1"
    return settings


def run_with_remote_gpus(command: Sequence[str], address: str, key: Path | None, data_plain: bool) -> NoReturn:
    """Becomes the program. Raises InputError if there is none, UnavailableError as settings_of."""
    settings = settings_of(address, key, data_plain)
    program = shutil.which(command[0])
    if program is None:
        raise InputError(f"there is no program {command[0]!r:.80}")
    try:
        os.execve(program, list(command), os.environ | settings)
    except OSError as error:
        raise InputError(f"{command[0]!r:.80} cannot be started: {error.strerror or error}") from error
