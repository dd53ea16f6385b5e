"""The progress bar of a stage on standard error, with an upper limit of the time left; lines without a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.text import Text

from waywiser.json_fields import clean
from waywiser.stages import Show

_LONGEST_SILENCE = 10.0


def error_console() -> Console:
    """The console for all output except results."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """One line on standard error."""
    error_console().print(Text(text))


def result_writer() -> Callable[[str], None]:
    """Writes text of results to standard output at once, above the bar if both are on a terminal. Made before the bar,
    which takes standard output's place.
    """
    output = sys.stdout

    def write(text: str) -> None:
        to = sys.stdout if output.isatty() else output
        to.write(text)
        to.flush()

    return write


@contextmanager
def bar(title: str, simulated: bool = False) -> Iterator[Show]:
    """A progress bar; yields the function that moves it. `simulated`: the time left is not of a real clock."""
    if simulated and not title.startswith("simulating"):
        title = f"{title}, simulated"
    console = error_console()
    if not console.is_terminal:
        yield lines(title, simulated=simulated)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=28),
        TaskProgressColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None, left="")
        start = time.monotonic()

        def show(done: int, total: int, seconds_left: float, label: str) -> None:
            told = _left(0 if simulated else seconds_left, done, total, time.monotonic() - start)
            left = Text(f"{told[2:]}  {clean(label)}").plain.replace("[", r"\[")
            progress.update(task, completed=done, total=total or None, left=left[: max(10, console.width - 60)])

        yield show


def _left(seconds: float, done: int, total: int, gone: float) -> str:
    """The time left: from the budget, else from the duration of the steps so far, if there are any."""
    about = ", at most"
    if seconds <= 0 and done == 0:
        return ""
    if seconds <= 0 and 0 < done < total:
        about, seconds = ", about", gone * (total - done) / done
    whole = max(0, round(seconds))
    return f"{about} {whole // 60}:{whole % 60:02d} left"


def lines(title: str, clock: Callable[[], float] = time.monotonic, simulated: bool = False) -> Show:
    """Prints a line for each tenth of the steps, and after ten seconds without a line."""
    tenth, start = -1, clock()
    said = start

    def show(done: int, total: int, seconds_left: float, label: str) -> None:
        nonlocal tenth, said
        now = 10 * done // total if total else 0
        if now == tenth and clock() - said < _LONGEST_SILENCE:
            return
        tenth, said = now, clock()
        left = _left(0 if simulated else seconds_left, done, total, clock() - start)
        say(f"{title}: step {done} of {total}{left}  {clean(label)}")

    return show
