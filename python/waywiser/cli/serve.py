"""`waywiser serve`: offers the GPUs of this machine to programs on others."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TextIO

import typer

from waywiser.errors import InputError, UnavailableError
from waywiser.signals import ENDING, handle

_MOST_VIRTUAL = 64


def serve(
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Listen at this address; port 0: any free port.")
    ] = "127.0.0.1:7421",
    gpu: Annotated[str, typer.Option(metavar="LIST", help="GPUs to offer: 0,2. Default: all.")] = "",
    virtual: Annotated[
        int, typer.Option(metavar="N", min=0, max=_MOST_VIRTUAL, help="Offer N virtual GPUs instead, for tests.")
    ] = 0,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The shared key. Default: ~/.config/waywiser/serve.key.")
    ] = None,
    new_key: Annotated[bool, typer.Option("--new-key", help="Write a new key into the file first.")] = False,
    functions: Annotated[
        str, typer.Option(metavar="MODULE|FILE", help="A module whose dictionary `functions` clients may call.")
    ] = "",
    builtins_only: Annotated[
        bool, typer.Option("--builtins-only", help="Clients run the built-in functions, and nothing else.")
    ] = False,
    data_plain: Annotated[
        bool, typer.Option("--data-plain", help="Arrays may go to other machines unencrypted, if a client wants it.")
    ] = False,
    peers: Annotated[
        str,
        typer.Option(metavar="LIST", help="Servers from which clients may copy arrays: 10.0.0.6,10.1.0.0/16."),
    ] = "",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="The most memory of one client.")] = "1G",
    requests: Annotated[
        int, typer.Option(metavar="N", min=0, help="The most requests of one client. 0: as many as it likes.")
    ] = 0,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0, help="The longest time of one client. 0: as long as it likes.")
    ] = 0,
    clients: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="The most clients at a time.")] = 16,
    metrics: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Serve metrics for Prometheus at this address.")
    ] = "",
    listed: Annotated[
        bool, typer.Option("--list", help="Show this machine's GPUs and the server that listens there, and end.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the log as JSON, a line for each event.")] = False,
) -> None:
    """Offer GPUs to programs on other machines, until Ctrl-C, SIGTERM or SIGHUP: see waywiser.remote.

    The server reads nothing else from a client before it has proved that it knows the key. Between machines all data
    are encrypted, except arrays if --data-plain is given and the client asks for it. Each client has a process of its
    own; a client that ends or dies gives its memory back.
    """
    from waywiser import __version__
    from waywiser.offload.functions import functions_of
    from waywiser.offload.keys import make_key, usual_key_file
    from waywiser.offload.peers import Peers
    from waywiser.offload.server import Offer, Server
    from waywiser.units import parse_bytes

    host, port = _address("--listen", listen)
    scrapes = _address("--metrics", metrics) if metrics else None
    file = key or usual_key_file()
    if listed:
        return _list(gpu, virtual, listen, file)
    Peers(peers)
    if new_key:
        make_key(file)
    if builtins_only and functions:
        raise InputError("--builtins-only and --functions exclude each other")
    out = _own_output()
    functions_of(functions)
    allowed = (builtins_only, data_plain, peers, requests, seconds)
    offer = Offer(_offered(gpu, virtual), virtual, parse_bytes(memory), clients, functions, *allowed)

    def log(event: str, facts: dict[str, Any]) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        words = " ".join(f"{name}={value}" for name, value in facts.items() if value != "")
        line = json.dumps({"at": at, "event": event, **facts}) if as_json else f"{at} {event} {words}"
        print(line, file=out, flush=True)

    server = Server((host, port), file, offer, log, __version__)

    def end(number: int, frame: FrameType | None) -> None:
        server.ask_to_stop()  # Python loses an exception that comes while it calls a destructor
        raise KeyboardInterrupt

    handle((signal.SIGINT, *ENDING), end)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            more: dict[str, Any] = {}
            if scrapes is not None:
                from waywiser.cli.about import about_here
                from waywiser.offload.metrics import serve_metrics

                answering = serve_metrics(server, about_here(), scrapes)
                more = {"metrics": f"{scrapes[0]}:{answering.server_port}"}
            log("listening", {"address": f"{host}:{server.port}", "gpus": len(offer.gpus), "key": str(file), **more})
            if not ipaddress.ip_address(host).is_loopback:
                what = "the built-in functions" if builtins_only else "the functions"
                kernels = "" if builtins_only or virtual else ", and CUDA kernels of their own"
                print(f"waywiser: clients on other machines can run {what} of this server{kernels}", file=sys.stderr)
                if data_plain:
                    print("waywiser: arrays of clients that want it go over the network unencrypted", file=sys.stderr)
            server.serve()
        log("stopping", {})
    finally:
        server.stop()


def _list(listed: str, virtual: int, listen: str, key: Path) -> None:
    """The GPUs that would be offered, the roads, and the server that listens there, be it of another machine."""
    from waywiser import _core
    from waywiser.errors import Error
    from waywiser.offload.client import DATA_ROADS
    from waywiser.offload.connect import state_of
    from waywiser.offload.server_lines import lines_about

    names = {} if virtual else {device.id: device.name for device in _core.discover().devices}
    try:
        gpus = _offered(listed, virtual)
    except UnavailableError as error:
        gpus = ()
        print(error)
    for number in gpus:
        print(f"GPU {number}: {names.get(f'gpu{number}', 'virtual')}")
    print(f"roads of arrays: {', '.join(DATA_ROADS)}")
    try:
        state = state_of(listen, key=key)
    except Error as error:
        print(f"no server at {listen}: {error}")
        return
    print(f"at {listen}:")
    for line in lines_about(state):
        print(f"  {line}")


def _own_output() -> TextIO:
    """Standard output, for the log alone: what modules of functions print in this process goes to standard error."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding, errors="replace")
    os.dup2(2, 1)
    return out


def _address(option: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    try:
        address = str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        colon = ""
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"{option} {text}: write an address of this machine and a port, as 10.0.0.1:7421")
    return address, int(port)


def _offered(listed: str, virtual: int) -> tuple[int, ...]:
    if virtual:
        count = virtual
    else:
        from waywiser import _core

        count = len(_core.discover().ids("gpu"))
        if count == 0:
            raise UnavailableError("this machine has no GPU to offer; --virtual N offers virtual ones, for tests")
    if not listed:
        return tuple(range(count))
    words = listed.split(",")
    if not all(word.isdecimal() and int(word) < count for word in words) or len(set(words)) != len(words):
        raise InputError(f"--gpu {listed}: write numbers below {count}, each once, as 0,2")
    return tuple(int(word) for word in words)
