"""What `waywiser bench offload` compares: a server's GPU by each road, over each network, and local programs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from waywiser.bench.offload import LOCAL, LOCAL_PINNED, LocalSide, RemoteSide, Side, network_road, remote_road
from waywiser.bench.offload_networks import variables_for, with_variables
from waywiser.bench.own_server import own_server
from waywiser.errors import DeadlineError, InputError, TransferError, UnavailableError
from waywiser.group.gpus import cuda_gpus, virtual_gpus
from waywiser.offload.connect import remote as connect

if TYPE_CHECKING:
    from waywiser.offload.client import DataRoad, RemoteGpu

_TIMEOUT = 600.0  # of a call


class Asked(NamedTuple):
    """The server, "" for one of this machine; its key; whether arrays also go unencrypted; the kinds of the networks by
    name, none for what groups choose; the roads; whether GPUs of this process are virtual, and the bytes of a client.
    """

    remote: str
    key: Path | None
    data_plain: bool
    networks: dict[str, str]
    roads: Sequence[DataRoad]
    virtual: bool
    memory: int

    def check(self) -> None:
        """Raises InputError for what does not go together."""
        if self.data_plain and not self.remote:
            raise InputError("offload: --data-plain is for the server of another machine: --remote")
        if self.networks and self.remote and not self.data_plain:
            raise InputError(
                "offload: arrays go encrypted by TCP to the address of --remote: --network needs --data-plain"
            )


class Sides(NamedTuple):
    """The sides by the names of their rows; why networks are left out; whether any GPU is virtual."""

    sides: dict[str, Side]
    left_out: dict[str, str]
    virtual: bool


@contextmanager
def sides_of(asked: Asked) -> Iterator[Sides]:
    """Connected within the block. Raises what connecting raises; of networks only if none is left."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="waywiser-bench-")))
        sides: dict[str, Side] = {}
        left_out: dict[str, str] = {}
        gpus: list[RemoteGpu] = []
        if asked.remote or not asked.networks:
            gpus.append(gpu := stack.enter_context(_connected(asked, folder)))
            sides |= {remote_road(road): RemoteSide(gpu, road) for road in asked.roads}
        if asked.data_plain and not asked.networks:
            gpus.append(gpu := stack.enter_context(_connected(asked, folder, plain=True)))
            sides |= {remote_road(road, True): RemoteSide(gpu, road) for road in asked.roads}
        for name in asked.networks:
            try:
                with ExitStack() as tried:
                    gpu = tried.enter_context(_connected(asked, folder / name, name, asked.data_plain))
                    sides |= {network_road(name, road): RemoteSide(gpu, road) for road in asked.roads}
                    stack.push(tried.pop_all())
            except (TransferError, DeadlineError, UnavailableError) as error:
                left_out[name] = str(error)
                continue
            gpus.append(gpu)
        if len(left_out) == len(asked.networks) > 0:
            raise TransferError("; ".join(f"{name}: {why}" for name, why in left_out.items()))
        here = virtual_gpus(1, asked.memory) if asked.virtual else cuda_gpus()
        sides |= {LOCAL: LocalSide(here), LOCAL_PINNED: LocalSide(here, pinned=True)}
        # The server of another machine may have virtual GPUs too, and says so.
        yield Sides(sides, left_out, asked.virtual or gpus[0].name.startswith("virtual"))


@contextmanager
def _connected(asked: Asked, folder: Path, network: str = "", plain: bool = False) -> Iterator[RemoteGpu]:
    """A GPU of the server, or of one of its own; over one network."""
    kind = asked.networks.get(network, "")
    with ExitStack() as stack:
        address, key = asked.remote, asked.key
        if not address:
            ends = variables_for(network, kind, "server") if network else {}
            folder.mkdir(exist_ok=True)
            address, key = stack.enter_context(own_server(folder, asked.virtual, asked.memory, ends))
        mine = variables_for(network, kind, "" if asked.remote else "client") if network else {}
        with with_variables(mine):
            gpu = stack.enter_context(connect(address, key=key, timeout=_TIMEOUT, data_plain=plain))
            gpu._check_plain(plain)
        if network:
            gpu.array([0.0]).get()  # UCX reaches the other end with the first bytes, or does not
        yield gpu
