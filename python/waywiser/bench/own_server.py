"""A server of GPUs for the time of a benchmark: `waywiser serve` on this machine, with a key of its own."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from waywiser.errors import TransferError

# Its end is asked for when the benchmark ends, for whatever reason.
_COMMAND = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    from waywiser.cli import run
    sys.exit(run(sys.argv[2:]))
"""
_STARTING, _ENDING = 60.0, 20.0


@contextmanager
def own_server(
    folder: Path, virtual: bool, memory: int, variables: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Path]]:
    """Address and key file of a server that ends with the block. `memory`: bytes of a client. `variables`: of its
    environment, besides those of this process. Raises TransferError.
    """
    key = folder / "serve.key"
    words = ["serve", "--listen", "127.0.0.1:0", "--new-key", "--key", str(key), "--memory", str(memory), "--json"]
    words += ["--virtual", "1"] if virtual else ["--gpu", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, str(os.getpid()), *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, **(variables or {})},
    )  # fmt: skip
    try:
        yield _address(process), key
    finally:
        process.terminate()
        try:
            process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    until = time.monotonic() + _STARTING
    said = b""
    while select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
        said += (part := os.read(process.stdout.fileno(), 4096))
        if line := re.search(rb'\{"at": .*\n', said):  # start-up files of Python may print before
            return str(json.loads(line[0])["address"])
        if not part:
            break
    raise TransferError("the server of GPUs did not start")
