"""What `waywiser` prints without arguments: first commands, in lines of at most 80 columns."""

from __future__ import annotations

# The four doors are those of README.md, each with the same command.
DOORS = """\
Waywiser measures every path between two memories and chooses the fastest.

  without any hardware      waywiser demo
  this machine, a minute    waywiser tune --quick

You
  run a cluster             waywiser doctor
  write multi-GPU programs  waywiser run -n 4 python program.py
  have your GPU elsewhere   waywiser serve --new-key
  plan a cluster            waywiser simulate bidirectional --machine hse-a \\
                              --vary gdr,gdrcopy

All verbs: waywiser --help"""


def print_doors() -> None:
    """Prints them on standard output."""
    print(DOORS)
