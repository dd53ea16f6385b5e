"""Every public name and call of the package, as a program of two ranks on one machine; `mypy --strict` reads it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

import waywiser as ww

Doubles = NDArray[np.float64]


def collectives(group: ww.Group, op: ww.ReduceOp) -> None:
    n, other = group.size, 1 - group.rank
    x: Doubles = np.full((2, 3), group.rank + 1.0)
    out: Doubles = np.empty((2, 3))
    group.barrier()
    same: Doubles = group.broadcast(np.full(3, float(group.rank)), root=1)
    assert same.tolist() == [1, 1, 1]
    total: Doubles = group.all_reduce(x, op=op)
    assert total.shape == (2, 3) and total[0, 0] == 3
    assert group.all_reduce(x, out, "max") is out and out[0, 0] == 2
    scanned: Doubles = group.scan(x)
    lower: Doubles | None = group.exscan(x, op="max")
    assert scanned[0, 0] == 2 * group.rank + 1 and (lower is None or lower[0, 0] == 1)
    least: tuple[float, int] = group.minloc(-x[0, 0], 3)
    greatest: tuple[Doubles, NDArray[np.int64]] = group.maxloc(x)
    assert least == (-2, 3) and greatest[0][0, 0] == 2 and greatest[1][0, 0] == 1
    at_root: Doubles | None = group.reduce(x, op="prod", root=0)
    assert (at_root is None) == (group.rank != 0)
    part: Doubles = group.reduce_scatter(np.ones((2 * n, 3)), op="avg")
    assert part.shape == (2, 3)
    gathered: Doubles = group.all_gather(x)
    assert gathered.shape == (n, 2, 3)
    uneven: Doubles = group.all_gather(np.ones(1 + group.rank), counts=[1, 2])
    assert uneven.shape == (3,)
    whole: Doubles | None = group.gather(x, root=1)
    assert whole is None or whole.shape == (n, 2, 3)
    mine: Doubles = group.scatter(gathered if group.rank == 0 else None, out)
    assert mine is out
    swapped: Doubles = group.all_to_all(np.full((n, 3), float(group.rank)))
    assert swapped.shape == (n, 3) and swapped[other, 0] == other
    room = bytearray(4)
    taken: bytearray = group.all_to_all_v(b"abc", [1, 2], room[: 2 * (1 + group.rank)], [1 + group.rank] * 2)
    assert bytes(taken) == (b"aa" if group.rank == 0 else b"bcbc")


def background(group: ww.Group) -> None:
    x: Doubles = np.full((2, 3), group.rank + 1.0)
    none: ww.Future[None] = group.start_barrier()
    none.wait()
    begun: ww.Future[Doubles] = group.start_all_reduce(x)
    while not begun.done():
        pass
    total: Doubles = begun.wait()
    assert total[0, 0] == 3
    assert group.start_broadcast(x.copy(), 1).wait()[0, 0] == 2
    assert (group.start_reduce(x, root=1).wait() is None) == (group.rank == 0)
    assert group.start_reduce_scatter(np.ones((4, 3)), op="min").wait().shape == (2, 3)
    assert group.start_scan(np.ones((2, 3))).wait().shape == (2, 3)
    assert (group.start_exscan(np.ones((2, 3)), op="max").wait() is None) == (group.rank == 0)
    assert group.start_all_gather(x).wait().shape == (2, 2, 3)
    assert group.start_all_to_all(x).wait().shape == (2, 3)
    both: list[Doubles] = ww.wait_all([group.start_all_reduce(x), group.start_all_gather(x)])
    place: int = ww.wait_any([group.start_all_reduce(x)])
    assert len(both) == 2 and place == 0
    gathered = group.start_gather(x).wait()
    assert group.start_scatter(gathered, np.empty((2, 3))).wait()[0, 0] == group.rank + 1

    async def later() -> Doubles:
        return await group.start_all_reduce(x)

    assert asyncio.run(later())[0, 0] == 3


def objects(group: ww.Group) -> None:
    total: float = group.all_reduce(0.5)
    count: int | None = group.reduce(1, root=1)
    told: bool = group.broadcast(group.rank == 1, root=1)
    assert total == 1.0 and count == (2 if group.rank == 1 else None) and told is True
    if group.rank == 0:
        group.send_object({"a": 1}, 1)
    else:
        assert group.recv_object(0) == {"a": 1}
    assert group.broadcast_object("text") == "text"
    ranks = group.gather_objects(group.rank)
    assert ranks is None or ranks == [0, 1]
    assert group.all_gather_objects((group.rank,)) == [(0,), (1,)]
    group.send(np.ones(1), ww.PROC_NULL)


def messages(group: ww.Group) -> None:
    other = 1 - group.rank
    x, y = np.full(4, float(group.rank)), np.empty(4)
    if group.rank == 0:
        group.send(x, other, tag=7)
        got: Doubles = group.recv(y, other)
    else:
        got = group.recv(y, other, tag=7)
        group.send(x, other)
    assert got is y and y[0] == other
    swapped: Doubles = group.sendrecv(x, other, y, other)
    assert swapped is y
    sent: ww.Future[None] = group.start_send(x, other)
    taken: Doubles = group.start_recv(y, other).wait()
    sent.wait()
    assert taken is y
    group.send(x, other, tag=3)
    found: ww.MessageStatus = group.probe()
    perhaps: ww.MessageStatus | None = group.iprobe(other, 4)
    assert (found.source, found.tag, found.type, found.count, perhaps) == (other, 3, "float64", 4, None)
    status = ww.MessageStatus()
    anybodys: Doubles = group.recv(y, ww.ANY_SOURCE, ww.ANY_TAG, status=status)
    assert anybodys is y and status.source == other
    group.send(x, other, tag=5)
    taken_message: ww.TakenMessage | None = group.mprobe(tag=5)
    assert taken_message is not None and taken_message.status.source == other and group.iprobe() is None
    its_numbers: Doubles = taken_message.recv(y)
    assert its_numbers is y and group.mprobe(patience=0) is None
    group.neighbor_exchange([ww.Exchange(other, x, y)])
    table = np.arange(8.0)
    prepared: ww.Prepared = group.prepare_exchange([ww.Exchange(other, ww.Indexed(table, [0, 4], 2), y)])
    prepared.start()
    prepared.wait()
    prepared()
    assert y.tolist() == [0, 1, 4, 5] and prepared.why_staged == prepared.why_copied == ""
    assert prepared.explain() == "a schedule of the hosts"
    scan: ww.Prepared = group.prepare_collective("scan", x, y, op="max")
    scan()


def windows(group: ww.Group) -> None:
    other = 1 - group.rank
    window: ww.Window[Doubles] = group.expose(np.zeros(4), symmetric=False)
    assert window.bytes_of(other) == window.array.nbytes == 32
    group.put(np.array([5.0]), window, other, offset=8)
    group.signal(window, other, offset=0, value=9)
    group.wait(window, offset=0, at_least=9)
    group.flush()
    copy: Doubles = group.get(np.empty(1), window, other, offset=8)
    assert copy[0] == window.array[1] == 5
    group.barrier()


def halos(group: ww.Group) -> None:
    other = 1 - group.rank
    grid = ww.GridPartition(group, (4, 6), ghost=(0, 1), periodic=[True, True], parts=[1, 2])
    assert grid.local_shape == (4, 5) and grid.neighbors == [other] and grid.first == (0, 3 * group.rank)
    x: Doubles = np.full(grid.local_shape, float(group.rank))
    faces: ww.GridPartition = grid.staggered(1)
    assert len(faces.shape) == 2
    halo = ww.HaloExchange(group, grid, [x])
    variant: ww.HaloVariant = "packed"
    halo.use(variant)
    halo.start()
    halo.finish()
    assert x[0].tolist() == [other, group.rank, group.rank, group.rank, other]
    more: ww.HaloField = ww.ComponentsFirst(np.zeros((2, *grid.local_shape), np.float32))
    halo.add(more)
    times = halo.tune(0.001)
    assert times[halo.variant] is not None and halo.explain().startswith(halo.variant)
    assert halo.counts(halo.variant)["exchanges"] > 0 and halo.counts()["exchanges"] > 0
    sides: list[ww.HaloSide] = halo.sides
    variants: list[ww.HaloVariant] = ["packed" for _ in sides]
    halo.use(variants)
    halo.use({each.neighbor: "per_neighbor" for each in sides})
    assert halo.times()["inside"] >= 0
    halo.remove(more)
    halo.exchange()
    assert len(halo.fields) == 1
    mesh = ww.MeshPartition(group, 3, [(other, [1], np.array([0]))])
    assert mesh.neighbors == [other]
    again = ww.halo.init_grid((8,), group=group)
    assert again.interior == (slice(1, 5),) and again.count == (4,)
    ww.halo.update_halo(np.zeros(6))
    ww.halo.finalize()


def gpu_arrays(group: ww.Group, gpus: ww.Gpus) -> None:
    assert gpus.backend == "virtual_gpu" and len(gpus) == 1
    x: ww.GpuArray = gpus.array([1.0, 2.0])
    y: ww.GpuArray = gpus.empty(2, "float64")
    y.fill(0)
    stream: ww.GpuStream = gpus.open_stream()
    used: ww.Stream = stream
    assert stream.cuda_stream == 0
    stream.copy(y, x)
    stream.synchronize(timeout=60)
    group.prepare(x, largest=x.nbytes)
    total: ww.GpuArray = group.all_reduce(x, y, stream=used)
    stream.synchronize()
    group.synchronize(total)
    values: Doubles = total.numpy()
    assert values.tolist() == [2, 4] and total.size == 2


def element_types(gpus: ww.Gpus) -> None:
    name: ww.ElementName = "complex64"
    kinds: list[ww.ElementType] = [name, "uint16", "bool", float, np.float32, np.dtype("datetime64[s]")]
    assert [gpus.empty(3, kind).nbytes for kind in kinds] == [24, 6, 3, 24, 12, 24]
    try:
        gpus.empty(3, "float46")  # type: ignore[arg-type]  # mypy would call an unneeded comment an error
    except ww.InputError as error:
        assert "float46" in str(error)
    else:
        raise AssertionError("a type float46 was taken")


def refuse(group: ww.Group) -> None:
    data: ww.Array = np.ones(3)
    kinds: list[type[ww.Error]] = [
        ww.UnavailableError, ww.DeadlineError, ww.DeviceError, ww.TransferError, ww.CorruptionError,
        ww.InterruptionError, ww.InputTypeError,
    ]  # fmt: skip
    assert len({kind.kind for kind in kinds}) == 7
    try:
        group.send(data, to=0, tag=1 << 40)
    except ww.InputError as error:
        assert isinstance(error, ValueError) and error.kind == "invalid input" and "\n" not in str(error)
    else:
        raise AssertionError("a tag of 2^40 was taken")


def other_ways(rank: int, size: int) -> None:
    """What other launchers have: written down for their types only."""
    from torch import distributed

    store = distributed.TCPStore("127.0.0.1", 0, size, rank == 0, timedelta(seconds=60))
    ww.from_torch(store, rank, size).close()
    from mpi4py import MPI

    ww.from_mpi4py(MPI.COMM_WORLD).close()
    assert len(ww.cuda_gpus()) > 0


def heaps(group: ww.Group) -> None:
    heap = ww.Heap(group, "typed", 4096)
    team: ww.HeapTeam = heap.world()
    assert (team.rank, team.size) == (group.rank, 2) and (heap.name, heap.nbytes) == ("typed", 4096)
    other = 1 - group.rank
    assert heap.why_proxied(other) == "" and heap.address(other) > 0
    assert heap.inbox_bytes(1000) >= 1000 and heap.why_no_lines() == ""
    heap.set_deadline(30)
    heap.put(np.full(4, 7.0), other, 64)
    heap.signal(other, 0, 2, "add")
    heap.wait(0, 1, ">=", source=other)
    heap.wait_and_take(0, 2)
    heap.barrier(team)
    heap.synchronize()
    heap.check()
    assert np.asarray(heap.array(4, float, 64)).sum() == 28
    row, column = heap.split_2d(2)
    assert heap.split(0) is not None and heap.split_strided(0, 1, 2) is not None and row.size > column.size
    assert len(team.terms()) > 0 and len(ww.nvrtc_options()) > 0 and ww.include_path().is_dir()
    try:
        heap.terms()
    except ww.InputError:
        group.barrier()


def files(group: ww.Group) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with ww.File(f"{folder}/a", "w") as file:
            file.write(np.arange(3.0))
            file.start_write(np.arange(3.0), offset=24).result(60)
        with ww.File(f"{folder}/a", way="buffered") as file:
            whole: Doubles = file.read_into(np.empty(6))
            assert whole.tolist() == [0, 1, 2] * 2 and file.size == 48 and file.way(48) == "buffered"


def main() -> None:
    failing: ww.OnFailure = "raise"
    gpus: ww.Gpus = ww.find_gpus() if "WITH_GPUS" in os.environ else ww.virtual_gpus(1)
    with ww.join(60, gpus=gpus, on_failure=failing) as group:
        assert 0 <= group.rank < group.size == 2 and group.timeout == 60
        assert group.encrypted_by(1 - group.rank) == ""
        collectives(group, "sum")
        for calls in (background, messages, objects, windows, heaps, halos, files, refuse):
            calls(group)
        gpu_arrays(group, gpus)
        element_types(gpus)
        part: ww.Group | None = group.split(color=group.rank, key=0)
        assert part is not None and part.size == 1 and group.split_apart(color=0, key=0) is not None
        part.close()
        here: ww.Group = group.split_by_machine(key=0)
        assert here.size == group.local_size > group.local_rank
        assert group.failure() is None
        other: ww.Group = ww.from_unique_id(ww.unique_id(), 0, 1)
        other.abort("as a test")
        print(f"rank {group.rank}: every call, libucp {ww.libucp.path is not None}")


if __name__ == "__main__":
    main()
