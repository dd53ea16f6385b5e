"""Ends the ranks of a job after their launcher has died, for whatever reason."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess

from waywiser import _core

# Words on standard input: PID and -PID of each rank as it begins and ends, `end` after a normal end. If the input ends
# without `end`, the launcher has died. Processes that left their rank's process group are found by their environment.
_SCRIPT = r"""
groups=
while read -r word; do
  case $word in
    end) exit 0 ;;
    -*) left=; for g in $groups; do [ "$g" = "${word#-}" ] || left="$left $g"; done; groups=$left ;;
    *) groups="$groups $word" ;;
  esac
done
for g in $groups; do kill -9 "-$g"; done
for turn in 1 2 3; do
  for file in $(grep -slz "^WAYWISER_JOB=$1\$" /proc/[0-9]*/environ); do
    pid=${file#/proc/}; kill -9 "${pid%/environ}"
  done
done
"""

# On another machine: if standard input, open as 3, ends before this shell's program, the program is ended.
_FAR_SCRIPT = r"""
cat <&3; kill -0 $$ || exit 0
trap '' TERM HUP INT
ranks() {
  grep -slz "^WAYWISER_RANK=$rank\$" $(grep -slz "^WAYWISER_JOB=$job\$" /proc/[0-9]*/environ) /dev/null
}
send() {
  for file in $(ranks); do pid=${file#/proc/}; kill "$1" "${pid%/environ}"; done
  kill "$1" $$; kill "$1" "-$$"
}
send -TERM; sleep 2; send -KILL
"""


class Keeper:
    """A process beside the launcher that depends only on the end of a pipe."""

    def __init__(self, job: str) -> None:
        outside = {name: value for name, value in os.environ.items() if not _core.tells_of_a_job(name)}
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "waywiser-keeper", job],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=outside,
            start_new_session=True,
        )

    def keep(self, process: int) -> None:
        """The leader of a process group has begun."""
        self._tell(str(process))

    def forget(self, process: int) -> None:
        """It has ended."""
        self._tell(f"-{process}")

    def close(self, all_ended: bool = True) -> None:
        """All have ended; if not, the keeper ends what is left of the job, as after the launcher's death."""
        if all_ended:
            self._tell("end")
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def _tell(self, word: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{word}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the keeper was ended by someone; the job does not depend on it


def kept_elsewhere(job: str, rank: int) -> str:
    """Commands for a shell on another machine before it becomes rank `rank`, with its standard input open as 3."""
    return f"{{ (job={shlex.quote(job)} rank={rank}; {_FAR_SCRIPT}) >/dev/null 2>&1 & }}"
