"""Commands whose output is shown only if they fail, and then what tells why."""

import re
import subprocess
import sys

from .messages import SetupError

MOST_LINES = 20
ERROR = re.compile(r"\S: (fatal )?error\b|undefined reference")  # of compilers and linkers


def why(output):
    """The lines of `output` with errors of compilers and linkers; if there is none, its last lines."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = list(dict.fromkeys(line for line in lines if ERROR.search(line)))
    return "\n".join(errors[:MOST_LINES] or lines[-MOST_LINES:])


def run(command, name=None, **more):
    """The lines on standard output. Raises SetupError with `name`, or the command, once it has shown why."""
    words = [str(word) for word in command]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    done = subprocess.run(words, **output, **more)
    if done.returncode != 0:
        print(why(done.stdout + done.stderr), file=sys.stderr)
        raise SetupError(f"failed, see above: {name or ' '.join(words)}")
    return done.stdout.splitlines()
