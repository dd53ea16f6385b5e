"""`ucx_perftest` as a contender: each slice is a run of its client and server, and gives one sample."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time

from waywiser.bench.team import NotOffered, TeamError

# Ours -> its test; what it reports is half a round trip, or the time of one message.
_TESTS = {
    "latency": ("tag_lat", 2.0), "bandwidth": ("tag_bw", 1.0), "message_rate": ("tag_bw", 1.0),
    "put": ("ucp_put_lat", 1.0), "get": ("ucp_get", 1.0), "put_bandwidth": ("ucp_put_bw", 1.0),
}  # fmt: skip
_SECONDS = 0.05
_MOST, _LEAST = 20_000, 5
_MEMORY = {"host": "host", "gpu": "cuda"}


class UcxPerftest:
    """Two processes for each slice; no wait for them in between."""

    name = "ucx"

    def __init__(self, on_gpu: bool) -> None:
        found = shutil.which("ucx_perftest")
        if found is None:
            raise TeamError("no ucx_perftest in PATH")
        self._program = found
        self._on_gpu = on_gpu
        self._seconds: dict[tuple[str, int], float] = {}
        self.version = _version(found)

    def slice(self, request: str, patience: float) -> list[list[float]]:
        operation, given, taken, size, window = request.split()[:5]
        if operation not in _TESTS:
            raise NotOffered("ucx_perftest has nothing like it")
        if "gpu" in (given, taken) and not self._on_gpu:
            raise NotOffered("knows no virtual GPUs")
        test, parts = _TESTS[operation]
        key = (operation, int(size))
        count = max(_LEAST, min(_MOST, int(_SECONDS / self._seconds.get(key, 1e-3))))
        words = ["-t", test, "-s", size, "-n", str(count), "-w", str(max(1, count // 10)), "-m",
                 f"{_MEMORY[given]},{_MEMORY[taken]}"]  # fmt: skip
        median = self._run(words, patience)
        self._seconds[key] = median
        return [[median * parts * (int(window) if operation not in ("latency", "put", "get") else 1)]]

    def _run(self, words: list[str], patience: float) -> float:
        """Seconds: the typical value of a run."""
        port = str(_free_port())
        server = subprocess.Popen(
            [self._program, "-p", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            text = self._client([self._program, "-p", port, "127.0.0.1", *words], patience)
        finally:
            server.kill()
            server.wait()
        found = re.search(r"^Final:\s+\d+\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", text, re.MULTILINE)
        if found is None:
            raise TeamError(f"ucx_perftest printed no figures: {' '.join(text.split())[-120:]}")
        typical = float(found[1])
        return (typical if typical > 0 else float(found[2])) * 1e-6

    def _client(self, command: list[str], patience: float) -> str:
        """Its output; it is started again while the server does not listen yet."""
        deadline = time.monotonic() + patience
        while True:
            try:
                done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=patience)
            except subprocess.TimeoutExpired as error:
                raise TeamError(f"ucx_perftest did not end within {patience:.0f} s") from error
            if done.returncode == 0:
                return done.stdout
            if time.monotonic() > min(deadline, deadline - patience + 3):
                raise TeamError(f"ucx_perftest failed: {' '.join((done.stderr or done.stdout).split())[:160]}")
            time.sleep(0.02)

    def close(self) -> None:
        """Nothing is left running."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _version(program: str) -> str:
    info = shutil.which("ucx_info") or os.path.join(os.path.dirname(program), "ucx_info")
    try:
        done = subprocess.run([info, "-v"], capture_output=True, text=True, timeout=10)
    except OSError:
        return "UCX"
    found = re.search(r"\d+\.\d+\.\d+", done.stdout)
    return f"UCX {found[0]}" if found else "UCX"
