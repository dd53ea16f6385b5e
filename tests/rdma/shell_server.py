"""Runs command lines of another machine, in place of an ssh server: `shell_server.py ADDRESS PORT`.

Who connects sends one line of JSON, [command, ...], and gets the exit code. `shell_server.py PORT ADDRESS COMMAND...`
is the other end, with the arguments that Open MPI gives to its remote shell.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading

SECONDS = 300


def serve(address: str, port: int) -> None:
    with socket.create_server((address, port)) as listener:
        print("listening", flush=True)
        while True:
            threading.Thread(target=run, args=(listener.accept()[0],), daemon=True).start()


def run(connection: socket.socket) -> None:
    with connection, connection.makefile("rw") as lines:
        words = json.loads(lines.readline())
        done = subprocess.run(["/bin/sh", "-c", " ".join(words)], stdin=subprocess.DEVNULL, timeout=SECONDS)
        lines.write(f"{done.returncode}\n")


def ask(port: int, address: str, words: list[str]) -> int:
    with socket.create_connection((address, port), timeout=SECONDS) as connection, connection.makefile("rw") as lines:
        lines.write(json.dumps(words) + "\n")
        lines.flush()
        return int(lines.readline() or 255)


if sys.argv[1].isdecimal():
    sys.exit(ask(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
serve(sys.argv[1], int(sys.argv[2]))
