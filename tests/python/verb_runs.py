"""A verb of the command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable

# Words of the command line -> exit code, standard output, standard error. The fixture `run` is one.
Run = Callable[..., tuple[int, str, str]]
