"""The communication back end of dask: with a double of dask's interface, and with dask itself where it is installed."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any

import made_up_dask
import numpy
import pytest
from rank_jobs import ROOT, runtime_folder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["runtime_folder"]
HAS_DASK = importlib.util.find_spec("distributed") is not None
PATIENCE = 60.0
Use = Callable[[Any], Coroutine[Any, Any, None]]


@pytest.fixture(params=["double", "dask"])
def comm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`waywiser.dask_backend.comm` on either."""
    if request.param == "double":
        for name, module in made_up_dask.modules().items():
            monkeypatch.setitem(sys.modules, name, module)
    elif not HAS_DASK:
        pytest.skip("distributed is not installed")
    monkeypatch.delitem(sys.modules, "waywiser.dask_backend.comm", raising=False)
    made = importlib.import_module("waywiser.dask_backend.comm")
    if request.param == "dask":
        registry = importlib.import_module("distributed.comm.registry")
        monkeypatch.setitem(registry.backends, "waywiser", made.WaywiserBackend())
    return made


def is_double(comm: ModuleType) -> bool:
    return comm.TCP is made_up_dask.Comm


def message_of(comm: ModuleType, **values: Any) -> dict[str, Any]:
    """With its arrays marked as dask wants it."""

    def marked(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [marked(each) for each in value]
        if is_double(comm) or not isinstance(value, numpy.ndarray):
            return value
        return importlib.import_module("distributed.protocol").to_serialize(value)

    return {name: marked(value) for name, value in values.items()}


def between(comm: ModuleType, serve: Use, use: Use) -> None:
    """Both ends of a connection, in this process."""

    async def both() -> None:
        backend = comm.WaywiserBackend()
        served: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def handle(there: Any) -> None:
            try:
                await serve(there)
                served.set_result(None)
            except Exception as error:
                served.set_exception(error)

        listener = backend.get_listener("127.0.0.1:0", handle, True)
        if hasattr(listener, "on_connection"):  # the handshake is for dask's own connect()
            listener.on_connection = _nothing
        await listener.start()
        assert listener.contact_address.startswith("waywiser://127.0.0.1:")
        here = await backend.get_connector().connect(listener.contact_address.removeprefix("waywiser://"))
        await use(here)
        await served
        await here.close()
        listener.stop()

    asyncio.run(asyncio.wait_for(both(), PATIENCE))


async def _nothing(comm: Any) -> None:
    pass


def test_messages_come_as_they_were_sent(comm: ModuleType) -> None:
    long = [numpy.arange(size, dtype=numpy.uint8) for size in (comm.LONG, 5_000_000)]
    short = numpy.arange(1000, dtype=numpy.int64)
    messages = [
        {"op": "hello"},
        {"short": short},
        {"both": [short, long[0], short[::-1].copy(), long[1]]},
        {"again": long[1]},
        {},
    ]

    async def serve(there: Any) -> None:
        for count in range(len(messages)):
            message = await there.read()
            assert (there._in is None) == (count < 2), "a channel is made with the first long frame"
            for value in message.values():
                for each in value if isinstance(value, (list, tuple)) else [value]:
                    if isinstance(each, numpy.ndarray):
                        each += 1  # its memory is its own
            await there.write(message_of(comm, **message))
        await there.close()
        assert there.closed()

    async def use(here: Any) -> None:
        for message in messages:
            assert await here.write(message_of(comm, **message)) > 0
            back = await here.read()
            assert back.keys() == message.keys()
            for one, other in zip(message.values(), back.values(), strict=True):
                for a, b in zip(*(x if isinstance(x, (list, tuple)) else [x] for x in (one, other)), strict=True):
                    assert (a + 1 == b).all() if isinstance(a, numpy.ndarray) else a == b
        assert here._out is not None and here._in is not None

    between(comm, serve, use)


def test_both_ends_may_write_long_frames_at_once(comm: ModuleType) -> None:
    data = numpy.arange(comm.LONG + 1, dtype=numpy.uint8)

    async def exchange(end: Any) -> None:
        for _ in range(5):
            _, come = await asyncio.gather(end.write(message_of(comm, data=data)), end.read())
            assert (come["data"] == data).all()

    between(comm, exchange, exchange)


def test_an_end_that_closes_is_an_error_at_the_other(comm: ModuleType) -> None:
    async def serve(there: Any) -> None:
        await there.read()
        there.abort()

    async def use(here: Any) -> None:
        await here.write(message_of(comm, data=numpy.zeros(comm.LONG, numpy.uint8)))
        with pytest.raises(comm.CommClosedError):
            await here.read()
        assert here.closed()
        with pytest.raises(comm.CommClosedError):
            await here.write({})

    between(comm, serve, use)


DIES = """
import asyncio, os, signal, sys
sys.path[:0] = [{tests!r}]
import made_up_dask
if {double}:
    sys.modules.update(made_up_dask.modules())
from waywiser.dask_backend import comm
data = __import__("numpy").zeros(4 << 20, "u1")
if not {double}:
    from distributed.comm import registry
    from distributed.protocol import to_serialize
    registry.backends["waywiser"] = comm.WaywiserBackend()
    data = to_serialize(data)
async def main():
    here = await comm.WaywiserConnector().connect(sys.argv[1])
    message = {{"data": data}}
    await here.write(message)
    send = comm.Channel.send
    async def die(self, buffers):
        os.kill(os.getpid(), signal.SIGKILL)
    comm.Channel.send = die  # after the head, before the frames
    await here.write(message)
asyncio.run(main())
"""


def test_a_process_that_dies_in_a_message_is_an_error_at_the_other(comm: ModuleType) -> None:
    code = DIES.format(tests=str(Path(__file__).parent), double=is_double(comm))

    async def serve() -> int | None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def handle(there: Any) -> None:
            assert (await there.read())["data"].size == 4 << 20 == comm.LONG
            with pytest.raises(comm.CommClosedError):
                await there.read()
            over.set_result(None)

        listener = comm.WaywiserBackend().get_listener("127.0.0.1:0", handle, True)
        if hasattr(listener, "on_connection"):
            listener.on_connection = _nothing
        await listener.start()
        place = listener.contact_address.removeprefix("waywiser://")
        process = subprocess.Popen([sys.executable, "-c", code, place])
        await over
        listener.stop()
        return await asyncio.get_running_loop().run_in_executor(None, process.wait)

    assert asyncio.run(asyncio.wait_for(serve(), PATIENCE)) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "is no message of waywiser://"),
        (b"waywiser" + (5000).to_bytes(4, "little") + bytes(8), "is no message of waywiser://"),
        (b"waywiser" + bytes(4) + (1 << 40).to_bytes(8, "little"), "is no message of waywiser://"),
        (b"waywiser" + bytes(4) + (1).to_bytes(8, "little") + (1 << 50).to_bytes(8, "little"), "is announced"),
        (b"waywiser" + bytes(4) + (1).to_bytes(8, "little") + (1 << 63 | 9).to_bytes(8, "little"), "and no channel"),
        (b"waywiser" + (7).to_bytes(4, "little") + bytes(8) + b"strange", ""),
        (b"waywiser" + (7).to_bytes(4, "little") + (1).to_bytes(8, "little") + b"strange"
         + (1 << 63 | 9).to_bytes(8, "little"), "a unique id has 128 bytes"),
    ],
)  # fmt: skip
def test_strangers_get_no_memory(comm: ModuleType, sent: bytes, why: str) -> None:
    async def serve() -> None:
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def handle(there: Any) -> None:
            try:
                await there.read()
                said.set_result("")
            except comm.CommClosedError as error:
                said.set_result(str(error))
            except Exception as error:  # dask's own: a message without frames
                said.set_result("" if not why else repr(error))

        listener = comm.WaywiserBackend().get_listener("127.0.0.1:0", handle, True)
        if hasattr(listener, "on_connection"):
            listener.on_connection = _nothing
        await listener.start()
        host, _, port = listener.contact_address.removeprefix("waywiser://").rpartition(":")
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(sent)
            assert why in await said
        listener.stop()

    asyncio.run(asyncio.wait_for(serve(), PATIENCE))


def entry_point(folder: Path) -> None:
    """What an installed package has, from pyproject.toml."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    info = folder / "waywiser-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: waywiser\nVersion: 0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in points.items()]
    (info / "entry_points.txt").write_text("".join(lines))


MERGE = """
import os, sys
import dask.dataframe as dd, numpy, pandas
from distributed import Client, LocalCluster

def seen(dask_worker):
    from distributed.comm.core import Comm
    return sum(getattr(comm, "_out", None) is not None for comm in Comm._instances)

def main():
    options = dict(n_workers=2, threads_per_worker=1, protocol="waywiser", dashboard_address=None, memory_limit=0)
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        assert cluster.scheduler_address.startswith("waywiser://"), cluster.scheduler_address
        chance = numpy.random.default_rng(1)
        one = pandas.DataFrame({"key": chance.permutation(200_000), "one": chance.random(200_000)})
        other = pandas.DataFrame({"key": chance.permutation(200_000) + 140_000, "other": chance.random(200_000)})
        frames = [dd.from_pandas(each, npartitions=4) for each in (one, other)]
        made = frames[0].merge(frames[1], on="key").compute().sort_values("key", ignore_index=True)
        wanted = one.merge(other, on="key").sort_values("key", ignore_index=True)
        pandas.testing.assert_frame_equal(made, wanted)
        print(len(made), sum(client.run(seen).values()) > 0, flush=True)

if __name__ == "__main__":
    main()
"""


@pytest.mark.skipif(not HAS_DASK, reason="distributed is not installed")
def test_a_merge_of_dask_runs_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    entry_point(tmp_path / "installed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "installed"), os.environ["PYTHONPATH"]]))
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__WAYWISER__LONG_FRAME", "64KiB")
    (tmp_path / "program.py").write_text(MERGE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "60000 True\n"), done.stderr
