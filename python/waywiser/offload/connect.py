"""Connecting to a server of GPUs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from waywiser.offload.client import DataRoad, RemoteGpu


def remote(
    address: str,
    *,
    key: Path | str | None = None,
    gpu: int = 0,
    timeout: float = 60,
    road: DataRoad | None = None,
    data_plain: bool = False,
) -> RemoteGpu:
    """A GPU of the server at `address` ("host:port"), which `waywiser serve` started there.

    `key`: the file with the key that client and server share; default ~/.config/waywiser/serve.key. `gpu`: which of the
    server's GPUs, from 0. `timeout`: the seconds that a call may take. `road`: how the server moves the bytes of
    arrays: "direct" receives into and sends from GPU memory, "pageable" and "pinned" go through memory of the server,
    "pipelined" through two page-locked pieces, of which one is copied while the other one travels. Default: the fastest
    for each size, if `waywiser tune --remote` has measured this GPU into the folder of results (WAYWISER_RESULTS, or
    waywiser-results), else "pipelined". `data_plain`: the bytes of arrays go to and from another machine unencrypted,
    by the fastest path of the network, RDMA included; everything else stays encrypted.

    Raises InputError for a wrong key, address or road, for an invalid file of results, and if the server refuses;
    UnavailableError for `data_plain` if the server was started without --data-plain; TransferError if it cannot be
    reached, DeadlineError.
    """
    from waywiser import _core
    from waywiser.offload.roads import kept, usual_file

    roads = kept(usual_file(), address, gpu) if road is None else None
    core = _core.connect_remote_gpu(address, str(key or ""), gpu, timeout, data_plain)
    connected = RemoteGpu(core, roads)
    if road is not None:
        connected.use_road(road)
    return connected


def state_of(address: str, *, key: Path | str | None = None) -> dict[str, Any]:
    """The GPUs and clients of a server: `gpus`, `clients`, `limit` in bytes of a client, `builtins_only`, `data_plain`,
    `encrypted`.

    Raises as remote.
    """
    from waywiser import _core

    state: dict[str, Any] = json.loads(_core.remote_server_state(address, str(key or "")))
    return state
