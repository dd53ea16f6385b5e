"""The progress of a build by Ninja: one line on a terminal, else one every 20 s. What compilers print is whole."""

import os
import re
import select
import subprocess
import sys
import time

_STATUS = "@waywiser %f %t@ "  # how Ninja begins the line of each file that is done
_DONE = re.compile(r"@waywiser (\d+) (\d+)@ ")
_NOISE = ("ninja: Entering directory", "ninja: no work to do")
_OF_NINJA = "Re-"  # it looks for new files, or runs CMake, again: no file of the build
_SILENCE = 20.0  # seconds between two lines, if they are not on a terminal
_TICK = 1.0


class BuildProgress:
    """Takes the lines of Ninja and writes to `to`."""

    def __init__(self, to, clock=time.monotonic):
        self._to, self._clock, self._terminal = to, clock, to.isatty()
        self._done = self._total = 0
        self._on_screen = False
        self._start = self._shown = clock()
        self._end = None  # when the build will be done, if as many seconds go on for each file

    def line(self, text):
        """One line of Ninja: a file that is done, or the output of a compiler, which is written as it is."""
        found = _DONE.match(text)
        if found and text.startswith(_OF_NINJA, found.end()):
            return
        if found:
            self._done, self._total = int(found[1]), int(found[2])
            now = self._clock()
            if 10 * self._done >= self._total:  # the first few files tell too little
                self._end = now + (now - self._start) * (self._total - self._done) / self._done
            self.tick()
        elif not text.startswith(_NOISE):
            self.clear()
            self._write(f"{text}\n")

    def tick(self):
        """Shows how far the build is, if it is time to."""
        now = self._clock()
        if self._total == 0 or (not self._terminal and now - self._shown < _SILENCE):
            return
        self._shown = now
        left = ""
        if self._end is not None and self._done < self._total:
            seconds = max(0, round(self._end - now))
            left = f", about {seconds // 60}:{seconds % 60:02d} left"
        text = f"waywiser: building: {self._done} of {self._total} files{left}"
        if self._terminal:
            self._write(f"\r{text}\x1b[K")
            self._on_screen = True
        else:
            self._write(f"{text}\n")

    def clear(self):
        """Removes the line of progress from a terminal."""
        if self._on_screen:
            self._write("\r\x1b[K")
            self._on_screen = False

    def _write(self, text):
        self._to.write(text)
        self._to.flush()


def run_ninja(command, to=None):
    """Runs Ninja with its progress on standard error, or `to`; returns its exit code."""
    environment = os.environ | {"NINJA_STATUS": _STATUS}
    progress = BuildProgress(to or sys.stderr)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as ninja:
        try:
            for line in _lines(ninja.stdout.fileno()):
                if line is None:
                    progress.tick()
                else:
                    progress.line(line.decode(errors="replace"))
        except BaseException:
            ninja.terminate()  # it removes what is half made
            raise
        finally:
            progress.clear()
    return ninja.returncode


def _lines(file):
    """The lines that arrive in a pipe, and None for each second without one."""
    rest = b""
    while True:
        if not select.select([file], [], [], _TICK)[0]:
            yield None
            continue
        data = os.read(file, 1 << 16)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
    if rest:
        yield rest
