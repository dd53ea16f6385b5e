"""Offers the GPUs of this machine: proves who a client is, and starts a process of its own for each client."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from waywiser import _core
from waywiser.errors import Error, InputError, TransferError
from waywiser.json_fields import Node, clean
from waywiser.offload.client_process import ClientProcess
from waywiser.offload.handshake import LATER, SECONDS, Connection, greeting
from waywiser.offload.keys import KeyFile
from waywiser.reception import Reception, Talk

_MOST_STRANGERS = 64  # connections that have not proved the key yet
_BACKLOG = 1024
_MOST_REFUSALS, _WINDOW = 100, 10.0  # lines of the log, and seconds
_LOOK = 0.2  # seconds until it looks whether it has been ended
_STARTING = 30.0  # seconds for a client's process to listen
_ENDING = 5.0  # seconds for clients to end when the server does
_GOING = 4.5  # seconds for a client's process to end when its client or its time has gone: it is killed within 5


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


@dataclass
class Client:
    """One client and the process that serves it."""

    name: str
    gpu: int
    process: ClientProcess
    since: float = field(default_factory=time.time)
    memory: int = 0
    requests: int = 0
    why: str = "it was ended"  # "": the client has ended in order


class _Refusals:
    """Logs who was refused, but not each one of a flood. Raises nothing."""

    def __init__(self, log: Callable[[str, dict[str, Any]], None]) -> None:
        self._log, self._lock = log, threading.Lock()
        self._until, self._told, self._more = 0.0, 0, 0

    def add(self, name: str, why: str) -> None:
        with self._lock:
            if time.monotonic() > self._until:
                more, self._until, self._told, self._more = self._more, time.monotonic() + _WINDOW, 0, 0
                if more:
                    self._log("refused", {"client": "others", "why": f"{more} more in {_WINDOW:g} s"})
            self._told += 1
            if self._told > _MOST_REFUSALS:
                self._more += 1
                return
            self._log("refused", {"client": name, "why": clean(why)})


class Server:
    """Listens at `address`; `log` gets every event: its name and its facts. `version`: of this package."""

    def __init__(
        self,
        address: tuple[str, int],
        key_file: Path,
        offer: Offer,
        log: Callable[[str, dict[str, Any]], None],
        version: str,
    ):
        self._key, self._offer, self._log, self._version = KeyFile(key_file), offer, log, version
        self._key.read()
        try:
            family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
            self._socket = socket.create_server(address, family=family, backlog=_BACKLOG)
        except OSError as error:
            raise InputError(f"cannot listen at {address[0]}:{address[1]}: {error.strerror or error}") from error
        self._port = int(self._socket.getsockname()[1])
        self._refusals = _Refusals(log)
        self._reception = Reception(
            self._socket, self._greet, self._refuse, most=_MOST_STRANGERS, seconds=SECONDS, farewell=LATER
        )
        self._lock = threading.Lock()
        self._clients: list[Client] = []
        self._meetings: list[threading.Thread] = []
        self._totals = {"joined": 0, "refused": 0, "failed": 0, "requests": 0}
        self._ended, self._asked = threading.Event(), False

    @property
    def port(self) -> int:
        """The port at which it listens. Raises nothing."""
        return self._port

    def serve(self) -> None:
        """Accepts clients until `stop()` or `ask_to_stop()`. Raises nothing for what clients and strangers do."""
        self._reception.run(lambda: self._asked or self._ended.is_set())

    def ask_to_stop(self) -> None:
        """Lets `serve()` return soon. For handlers of signals: takes no lock. Raises nothing."""
        self._asked = True

    def stop(self, patience: float = _ENDING) -> None:
        """Accepts no more clients, waits `patience` seconds for those that are here, and ends their processes.

        When it returns, their ends are in the log, and nothing more is written: Python aborts if a thread still writes
        to standard output when the program ends.
        """
        self._ended.set()
        until = time.monotonic() + patience
        for client in self._all():
            client.process.end(until - time.monotonic())
        for meeting in self._meetings:
            with contextlib.suppress(RuntimeError):  # an interrupt came before it started
                meeting.join(_ENDING + SECONDS)  # the end of a process, or a request

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

    def _greet(self, sock: socket.socket, name: str) -> Talk[None]:
        connection = yield from greeting(sock, self._key.read)
        self._begin(connection, name)

    def _begin(self, connection: Connection, name: str) -> None:
        """Known before it starts: an interrupt may come in between, and `stop()` has to wait for it even so."""
        meeting = threading.Thread(target=self._meet, args=(connection, name), daemon=True)
        self._meetings = [*(one for one in self._meetings if one.is_alive()), meeting]
        meeting.start()

    def _refuse(self, name: str, why: str) -> None:
        self._count("refused")
        self._refusals.add(name, why)

    def _meet(self, connection: Connection, name: str) -> None:
        try:
            self._answer(connection, connection.receive(), name)
        except Exception as error:  # it costs this client only, which learns what is its own fault
            known = isinstance(error, Error)
            self._refuse(name, str(error) if known else f"{type(error).__name__}: {error}")
            told = str(error) if isinstance(error, InputError) else "the server has failed: its log says why"
            with contextlib.suppress(Error):
                connection.send({"problem": told})
        finally:
            connection.close()

    def _answer(self, connection: Connection, request: Node, name: str) -> None:
        if request.text("do") == "list":
            return connection.send(self.state())
        if request.text("do") != "use":
            raise request.refuse("a server of GPUs is asked for `list` or `use`")
        _check_version(request, self._version)
        place = request.integer("gpu")
        if place >= len(self._offer.gpus):
            raise InputError(f"this server has no GPU {place}: it offers {len(self._offer.gpus)}")
        client = self._start(connection, place, name)
        try:
            self._count("joined")
            self._log("joined", {"client": name, "gpu": client.gpu, "process": client.process.number})
            self._follow(connection, client)
        except Error as error:
            client.why = str(error)
        finally:
            self._forget(client, _ENDING if self._ended.is_set() or client.process.ended else 0)
            self._count("failed", client.why != "")
            self._count("requests", client.requests)
            told = {"requests": client.requests, "seconds": round(time.time() - client.since, 3), "why": client.why}
            self._log("left", {"client": name, "code": client.process.code, **told})

    def _start(self, connection: Connection, place: int, name: str) -> Client:
        offer = self._offer
        order = {
            "job": secrets.token_hex(8), "secret": connection.secret, "host": connection.here,
            "encrypt": not ipaddress.ip_address(connection.here).is_loopback,
            "gpu": offer.gpus[place], "virtual": offer.virtual, "memory": offer.memory, "module": offer.module,
            "builtins_only": offer.builtins_only, "data_plain": offer.data_plain, "peers": offer.peers,
            "most_requests": offer.most_requests, "most_seconds": offer.most_seconds,
        }  # fmt: skip
        with self._lock:
            if len(self._clients) >= offer.clients:
                raise InputError(f"this server has {offer.clients} clients, and takes no more")
            process = ClientProcess(order, lambda text: self._log("printed", {"client": name, "text": text}))
            client = Client(name, offer.gpus[place], process)
            self._clients.append(client)
        try:
            told = process.first_message(_STARTING)
            if not told.has("port"):
                raise TransferError(told.text("ended", "the client's process told no port"))
            more: dict[str, Any] = {"version": self._version, "protocol": _core.offload_protocol}
            more |= {name: order[name] for name in ("job", "host", "encrypt", "memory", "data_plain")}
            connection.send({"port": told.integer("port", most=65535), "gpu": self._name_of(client.gpu), **more})
        except BaseException:
            self._forget(client, 0)
            raise
        return client

    def _forget(self, client: Client, patience: float) -> None:
        with self._lock:
            self._clients.remove(client)
        client.process.end(patience)
        client.process.close()

    def _follow(self, connection: Connection, client: Client) -> None:
        """Until the client's process has ended, or has had its time to. A client says nothing after its request."""
        most, is_here = self._offer.most_seconds, True
        until = time.monotonic() + most + _GOING if most else float("inf")  # its process tells it before
        while not self._ended.is_set() and time.monotonic() < until:
            left = min(_LOOK, until - time.monotonic())
            messages, is_said = client.process.hear(max(left, 0.0), connection.line.fileno() if is_here else None)
            for message in messages:
                self._note(client, message)
            if client.process.ended:
                return
            if is_said:
                is_here, until = False, min(until, time.monotonic() + _GOING)  # its process notices it too
                client.why = "its connection says more than a request" if connection.line.is_open() else client.why

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


def _check_version(request: Node, version: str) -> None:
    """Raises InputError for a client whose requests are not those that a worker here reads."""
    theirs = "an older one, which does not tell its version"
    if request.has("version") and request.has("protocol"):
        theirs = f"waywiser {request.text('version')} (protocol {request.integer('protocol')})"
    ours = f"waywiser {version} (protocol {_core.offload_protocol})"
    if theirs != ours:
        raise InputError(f"this server has {ours}, the client {theirs}: install the same version at both")
