#!/usr/bin/env python3
"""Calls of kernels on a GPU of `waywiser serve` on this machine, by a client that does not use CUDA, beside the same
calls of a program with a GPU of its own; by shared memory, and by TCP over the loopback device.

remote_calls.py PROGRAM     # remote_calls_benchmark, as it was built; JSON

The programs take turns. Each one checks what its kernels have added.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from remote_memory import serving

TURNS = 3
FIGURES = ("launch_us", "synchronous_us", "steps_seconds")


def told(program: str, *words: str, **settings: str) -> dict[str, Any]:
    done = subprocess.run(
        [program, *words], env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode != 0:
        raise SystemExit(f"remote_calls.py: {' '.join(words)}: {done.stderr.strip()}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    program = parser.parse_args().program
    # Between processes of one machine short messages go by shared memory, whatever UCX may use. Client and server that
    # shall use TCP therefore have different names of machines.
    by_tcp = {"WAYWISER_UCX_TLS": "tcp,self"}
    turns: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as other,
        serving(Path(one)) as near,
        serving(Path(other), WAYWISER_MACHINE="server", **by_tcp) as far,
    ):
        turns += [
            {
                "local": told(program),
                "shared memory": told(program, *map(str, near)),
                "TCP": told(program, *map(str, far), WAYWISER_MACHINE="client", **by_tcp),
            }
            for _ in range(TURNS)
        ]
    medians = {
        way: {each: statistics.median(turn[way][each] for turn in turns) for each in FIGURES} for way in turns[0]
    }
    of_local = {
        way: {each: medians[way][each] / medians["local"][each] for each in FIGURES} for way in ("shared memory", "TCP")
    }
    print(json.dumps({"turns": turns, "medians": medians, "of_local": of_local}, indent=2))


if __name__ == "__main__":
    main()
