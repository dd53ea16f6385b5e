"""Offers the GPUs of this machine: proves who a client is, and starts a process of its own for each client."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import secrets
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from waywiser import __version__, _core
from waywiser.checked import Node, clean
from waywiser.errors import DeadlineError, Error, InputError, TransferError
from waywiser.offload.handshake import SECONDS, Connection, greet_as_server
from waywiser.offload.keys import read_key

_MOST_STRANGERS = 64  # connections that have not proved the key yet
_STARTING = 30.0  # seconds for a client's process to listen
_ENDING = 5.0  # seconds for a client's process to end when its client has gone


class Offer(NamedTuple):
    """What a server offers. `gpus`: the numbers of its GPUs; `virtual`: how many virtual GPUs it has instead, or 0.

    `memory`: the most bytes of one client. `clients`: the most at a time. `module`: where functions come from.
    `builtins_only`: clients run the built-in functions, and nothing else. `data_plain`: the arrays of clients on other
    machines may go unencrypted. `peers`: the addresses and networks of servers from which clients may have arrays
    copied, besides those of this machine. `most_requests`, `most_seconds`: of one client; 0: as many as it likes.
    """

    gpus: tuple[int, ...]
    virtual: int
    memory: int
    clients: int
    module: str
    builtins_only: bool = False
    data_plain: bool = False
    peers: str = ""
    most_requests: int = 0
    most_seconds: float = 0.0


class Lines:
    """The lines of JSON that a client's process writes."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.file = pipe.fileno()
        self.ended = False
        self._pipe, self._rest = pipe, b""

    def read(self) -> list[Node]:
        """The whole lines of what is there; waits for some."""
        part = os.read(self.file, 1 << 16)
        self.ended = part == b""
        *lines, self._rest = (self._rest + part).split(b"\n")
        return [Node(json.loads(line), "a client's process") for line in lines]


@dataclass
class Client:
    """One client and the process that serves it."""

    name: str
    gpu: int
    process: subprocess.Popen[bytes]
    told: Lines
    since: float = field(default_factory=time.time)
    memory: int = 0
    requests: int = 0
    why: str = "it was ended"  # "": the client has ended in order


class Server:
    """Listens at `address`; `log` is told every event, as its name and its facts."""

    def __init__(
        self, address: tuple[str, int], key_file: Path, offer: Offer, log: Callable[[str, dict[str, Any]], None]
    ):
        self._key_file, self._offer, self._log = key_file, offer, log
        read_key(key_file)
        try:
            family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
            self._socket = socket.create_server(address, family=family, backlog=128)
        except OSError as error:
            raise InputError(f"cannot listen at {address[0]}:{address[1]}: {error.strerror or error}") from error
        self._strangers = threading.Semaphore(_MOST_STRANGERS)
        self._lock = threading.Lock()
        self._clients: list[Client] = []
        self._meetings: list[threading.Thread] = []
        self._totals = {"joined": 0, "refused": 0, "failed": 0, "requests": 0}
        self._ended = threading.Event()

    @property
    def port(self) -> int:
        """The port at which it listens. Raises nothing."""
        return int(self._socket.getsockname()[1])

    def serve(self) -> None:
        """Accepts clients until `stop()`. Raises nothing for what clients do."""
        self._socket.settimeout(0.2)
        while not self._ended.is_set():
            try:
                sock, peer = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            if not self._strangers.acquire(blocking=False):
                sock.close()
                continue
            self._meetings = [one for one in self._meetings if one.is_alive()]
            self._meetings.append(threading.Thread(target=self._meet, args=(sock, f"{peer[0]}:{peer[1]}"), daemon=True))
            self._meetings[-1].start()

    def stop(self, patience: float = _ENDING) -> None:
        """Accepts no more clients, waits `patience` seconds for those that are here, and ends their processes.

        When it returns, their ends are in the log, and nothing more is written: Python aborts if a thread still writes
        to standard output when the program ends.
        """
        self._ended.set()
        self._socket.close()
        until = time.monotonic() + patience
        for client in self._all():
            _end(client.process, until - time.monotonic())
        for meeting in self._meetings:
            meeting.join(_ENDING + SECONDS)  # the end of a process, or a handshake

    def totals(self) -> dict[str, int]:
        """Since the start: clients that `joined`, were `refused`, and have `failed`, and `requests` of those that have
        left. Raises nothing.
        """
        with self._lock:
            return dict(self._totals)

    def _count(self, name: str, more: int = 1) -> None:
        with self._lock:
            self._totals[name] += more

    def _all(self) -> list[Client]:
        with self._lock:
            return list(self._clients)

    def _meet(self, sock: socket.socket, name: str) -> None:
        connection = None
        try:
            try:
                connection = greet_as_server(sock, read_key(self._key_file))  # read again: it may have been replaced
                request = connection.receive()
            finally:
                self._strangers.release()
            self._answer(connection, request, name)
        except Error as error:
            self._count("refused")
            self._log("refused", {"client": name, "why": clean(str(error))})
            if connection is not None:
                with contextlib.suppress(Error):
                    connection.send({"problem": str(error)})
        finally:
            sock.close()

    def _answer(self, connection: Connection, request: Node, name: str) -> None:
        if request.text("do") == "list":
            return connection.send(self.state())
        if request.text("do") != "use":
            raise request.refuse("a server of GPUs is asked for `list` or `use`")
        _check_version(request)
        place = request.integer("gpu")
        if place >= len(self._offer.gpus):
            raise InputError(f"this server has no GPU {place}: it offers {len(self._offer.gpus)}")
        client = self._start(connection, place, name)
        try:
            self._count("joined")
            self._log("joined", {"client": name, "gpu": client.gpu, "process": client.process.pid})
            self._follow(connection, client)
        finally:
            with self._lock:
                self._clients.remove(client)
            _end(client.process, _ENDING)
            self._count("failed", client.why != "")
            self._count("requests", client.requests)
            told = {"requests": client.requests, "seconds": round(time.time() - client.since, 3), "why": client.why}
            self._log("left", {"client": name, "code": client.process.returncode, **told})

    def _start(self, connection: Connection, place: int, name: str) -> Client:
        offer = self._offer
        here = connection.sock.getsockname()[0]
        order = {
            "job": secrets.token_hex(8), "secret": connection.secret, "host": here,
            "encrypt": not ipaddress.ip_address(here).is_loopback,
            "gpu": offer.gpus[place], "virtual": offer.virtual, "memory": offer.memory, "module": offer.module,
            "builtins_only": offer.builtins_only, "data_plain": offer.data_plain, "peers": offer.peers,
            "most_requests": offer.most_requests, "most_seconds": offer.most_seconds,
        }  # fmt: skip
        with self._lock:
            if len(self._clients) >= offer.clients:
                raise InputError(f"this server has {offer.clients} clients, and takes no more")
            process = subprocess.Popen(
                [sys.executable, "-m", "waywiser.offload.worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
            client = Client(name, offer.gpus[place], process, Lines(_pipe(process.stdout)))
            self._clients.append(client)
        try:
            _pipe(process.stdin).write(json.dumps(order).encode() + b"\n")
            _pipe(process.stdin).flush()
            told = _first_line(client, _STARTING)
            if not told.has("port"):
                raise InputError(told.text("ended", "the client's process told no port"))
            more: dict[str, Any] = {"version": __version__, "protocol": _core.offload_protocol}
            more |= {name: order[name] for name in ("job", "host", "encrypt", "memory", "data_plain")}
            connection.send({"port": told.integer("port", most=65535), "gpu": self._name_of(client.gpu), **more})
        except BaseException as error:
            with self._lock:
                self._clients.remove(client)
            _end(process, 0)
            if isinstance(error, OSError) and not isinstance(error, Error):
                raise TransferError(f"the client's process: {error}") from error
            raise
        return client

    def _follow(self, connection: Connection, client: Client) -> None:
        """Until the client's process has ended, or the client has gone."""
        most, gone = self._offer.most_seconds, False
        until = time.monotonic() + most + _ENDING if most else float("inf")  # its process tells it before
        while not self._ended.is_set() and time.monotonic() < until:
            files = [client.told.file, *([] if gone else [connection.sock.fileno()])]
            ready, _, _ = select.select(files, [], [], 0.2)
            if client.told.file in ready:
                for line in client.told.read():
                    self._note(client, line)
                if client.told.ended:
                    return
            elif ready and not connection.is_open():
                gone, until = True, min(until, time.monotonic() + _ENDING)  # its process notices it too

    def _note(self, client: Client, told: Node) -> None:
        if told.has("ended"):
            client.why = told.text("ended")
            return
        client.memory, client.requests = told.integer("memory"), told.integer("requests")

    def _name_of(self, gpu: int) -> str:
        return f"{'virtual ' if self._offer.virtual else ''}GPU {gpu}"

    def state(self) -> dict[str, Any]:
        """The GPUs and the clients now, as state_of() returns them. Raises nothing."""
        clients = self._all()
        return {
            "gpus": [{"gpu": gpu, "name": self._name_of(gpu),
                      "clients": sum(1 for one in clients if one.gpu == gpu),
                      "memory": sum(one.memory for one in clients if one.gpu == gpu)} for gpu in self._offer.gpus],
            "clients": [{"client": one.name, "gpu": one.gpu, "memory": one.memory, "requests": one.requests,
                         "seconds": time.time() - one.since} for one in clients],
            "limit": self._offer.memory, "builtins_only": self._offer.builtins_only,
            "data_plain": self._offer.data_plain,
        }  # fmt: skip


def _check_version(request: Node) -> None:
    """Raises InputError for a client whose requests are not those that a worker here reads."""
    theirs = "an older one, which does not tell its version"
    if request.has("version") and request.has("protocol"):
        theirs = f"waywiser {request.text('version')} (protocol {request.integer('protocol')})"
    ours = f"waywiser {__version__} (protocol {_core.offload_protocol})"
    if theirs != ours:
        raise InputError(f"this server has {ours}, the client {theirs}: install the same version at both")


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise TransferError("a process without pipes")
    return pipe


def _first_line(client: Client, seconds: float) -> Node:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if not select.select([client.told.file], [], [], left)[0]:
            break
        if lines := client.told.read():
            return lines[0]
        if client.told.ended:
            raise TransferError("the client's process has ended")
    raise DeadlineError(f"the client's process has not started within {seconds:g} s")


def _end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Waits so long for the end of a process, then kills it and what it has started."""
    try:
        process.wait(max(seconds, 0))
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
