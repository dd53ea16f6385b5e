"""What `waywiser --help` prints, without Typer, whose import takes longer than all else of it."""

from __future__ import annotations

import os

# Verb -> its line in `waywiser --help`, in the usual order of use.
VERBS: dict[str, str] = {
    "demo": "See it without hardware: a recorded machine.",
    "tune": "Discover, measure, choose, verify, report: everything.",
    "report": "Write the page and the pictures again.",
    "explain": "Explain the choice of a path.",
    "doctor": "Check what makes communication slow, here or in a running job.",
    "network": "Show, set and undo the rules that steer packets.",
    "topology": "Show this machine or a recorded one, or convert its description.",
    "machine": "Describe a machine that is not here by its parts.",
    "place": "Find the best-connected GPUs.",
    "run": "Start the ranks of a program, here or by ssh.",
    "status": "Show the current calls of the ranks of a job.",
    "serve": "Offer the GPUs of this machine to programs on others.",
    "remote": "Show a server of GPUs and its clients, or run a program on them.",
    "bench": "Time the group, beside Open MPI, NCCL, UCX, PyTorch.",
    "apply": "Propose settings of UCX, Open MPI, MPICH and NCCL.",
    "verify": "Compare settings with the defaults by the library's benchmark.",
    "env": "Print this node's settings for a shell, a module file, Slurm.",
    "monitor": "Show the traffic on each link; serve metrics for Prometheus.",
    "kit": "Write files for systemd, Prometheus, Grafana and Slurm.",
    "measure": "Measure every path between two memories.",
    "plan": "Choose the fastest path for each pair and size.",
    "compare": "Show the differences between two profiles.",
    "simulate": "Predict times on another machine or cluster.",
    "calibrate": "Fit the simulator to the measurements of a machine.",
}

_COLUMNS = 80  # at least; Typer folds the lines of a narrower terminal
_OPTIONS = """\
Usage: waywiser [OPTIONS] COMMAND [ARGS]...

  Measures every path between two memories of a machine and chooses the
  fastest for each message size.

Options:
  --version             Print the version.
  --cmake-dir           Print the folder for find_package().
  --cflags              Print the flags for the C or C++ compiler.
  --libs                Print the flags for the linker.
  --schemas             Print the folder of the JSON Schemas.
  --verbose             Show the traceback of a failure.
  --install-completion  Install completion for the current shell.
  --show-completion     Show completion for the current shell, to copy it or
                        customize the installation.
  --help                Show this message and exit.

Commands:
"""


def help_text() -> str:
    """What Typer prints for `waywiser --help` in 80 columns."""
    width = max(map(len, VERBS))
    return _OPTIONS + "".join(f"  {verb:{width}}  {line}\n" for verb, line in VERBS.items())


def fits_terminal() -> bool:
    """Whether Typer would print the same here."""
    try:
        columns = int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(1).columns
    except (OSError, ValueError):
        return True  # no terminal
    return columns >= _COLUMNS
