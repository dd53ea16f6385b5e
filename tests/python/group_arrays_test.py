"""Arrays of other libraries, and of virtual GPUs, in the calls of a group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from one_rank import alone, gpus
from rank_jobs import NO_PLAN, run, runtime_folder

import waywiser as ww
from waywiser.group.arrays import stream_number

__all__ = ["alone", "gpus", "runtime_folder"]


class OnlyInterface:
    """Another library's array: the memory of a GpuArray by __cuda_array_interface__ alone."""

    def __init__(self, array: ww.GpuArray, **changes: Any) -> None:
        self.array = array
        self.changes = changes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.array.__cuda_array_interface__ | self.changes


class OnlyDlpack:
    """The same by DLPack alone."""

    def __init__(self, array: ww.GpuArray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_every_call_with_gpu_arrays() -> None:
    code = """
    gpus = ww.virtual_gpus(3)
    group = ww.join(gpus=gpus)
    rank, size, gpu = group.rank, group.size, group.rank
    on_gpu = lambda values: gpus.array(np.asarray(values), gpu)
    mine, blocks = on_gpu([rank, 10 + rank]), on_gpu(np.arange(size) * 10 + rank)
    total = group.all_reduce(mine)
    assert (type(total), total.gpu, total.numpy().tolist()) == (ww.GpuArray, gpu, [3, 33])
    assert group.start_all_reduce(mine, op="max").wait().numpy().tolist() == [2, 12]
    reduced = group.reduce(mine, op="prod", root=1)
    assert reduced.numpy().tolist() == [0, 1320] if rank == 1 else reduced is None
    assert group.broadcast(on_gpu([rank]), root=2).numpy().tolist() == [2]
    assert group.all_gather(mine).numpy().tolist() == [[0, 10], [1, 11], [2, 12]]
    gathered = group.gather(mine, root=0)
    assert gathered.numpy().tolist() == [[0, 10], [1, 11], [2, 12]] if rank == 0 else gathered is None
    assert group.scatter(gathered, gpus.empty(2, np.int64, gpu)).numpy().tolist() == [rank, 10 + rank]
    assert group.all_to_all(blocks).numpy().tolist() == [10 * rank, 10 * rank + 1, 10 * rank + 2]
    assert group.reduce_scatter(blocks).numpy().tolist() == [30 * rank + 3]
    right, left = (rank + 1) % 3, (rank + 2) % 3
    assert group.sendrecv(mine, right, on_gpu([0, 0]), left).numpy().tolist() == [left, 10 + left]
    halos = [on_gpu([0, 0]), np.zeros(2, np.int64)]  # one end on the host
    group.neighbor_exchange([ww.Exchange(left, mine, halos[0], 1, 2), ww.Exchange(right, mine, halos[1], 2, 1)])
    assert (halos[0].numpy()[0], halos[1][0]) == (left, right)
    group.barrier()
    """
    code, lines, errors = run(3, code, program="import numpy as np, waywiser as ww\n")
    assert (code, lines) == (0, []) and errors in ("", NO_PLAN)


def test_calls_follow_the_stream() -> None:
    """Enqueued work is done 5 ms later: a call that does not wait for it would send old data."""
    code = """
    gpus = ww.virtual_gpus(2, delay=0.005)
    group = ww.join(gpus=gpus)
    rank, gpu, other = group.rank, group.rank, 1 - group.rank
    new, data, out = gpus.array([rank + 1.0] * 6, gpu), gpus.array([9.0] * 6, gpu), gpus.array([9.0] * 6, gpu)
    result, half = gpus.array([9.0] * 6, gpu), gpus.array([9.0] * 3, gpu)
    stream = gpus.open_stream(gpu)
    assert stream.cuda_stream == 0

    def follows(call, wanted):
        data.fill(9.0)
        stream.copy(data, new)
        made = call()
        if made.size == 6: stream.copy(result, made)
        group.synchronize(made, stream=stream)
        assert (result if made.size == 6 else made).numpy().flatten().tolist() == wanted, (call, made.numpy())

    follows(lambda: group.all_reduce(data, out, stream=stream), [3.0] * 6)
    follows(lambda: group.all_reduce(data, op="max", stream=stream), [2.0] * 6)
    follows(lambda: group.start_all_reduce(data, stream=stream).wait(), [3.0] * 6)
    follows(lambda: group.broadcast(data, 1, stream=stream), [2.0] * 6)
    follows(lambda: group.all_gather(data, stream=stream), [1.0] * 6 + [2.0] * 6)
    follows(lambda: group.all_to_all(data, out, stream=stream), [1.0] * 3 + [2.0] * 3)
    follows(lambda: group.reduce_scatter(data, half, stream=stream), [3.0] * 3)
    follows(lambda: group.sendrecv(data, other, out, other, stream=stream), [other + 1.0] * 6)
    follows(lambda: group.scatter(data, half, stream=stream), [1.0] * 3)
    kept = []  # until the stream is through
    follows(lambda: (kept.append(group.reduce(data, stream=stream)), data)[1], [rank + 1.0] * 6)
    assert kept.pop() is None if rank else kept.pop().numpy().tolist() == [3.0] * 6
    around = [ww.Exchange(other, give=data, take=out)]
    follows(lambda: (group.neighbor_exchange(around, stream=stream), out)[1], [other + 1.0] * 6)
    follows(lambda: (kept.append(group.gather(data, stream=stream)), data)[1], [rank + 1.0] * 6)
    assert kept[0] is None if rank else kept[0].numpy().tolist() == [[1.0] * 6, [2.0] * 6]
    follows(lambda: group.all_gather(data, counts=[6, 6], stream=stream), [1.0] * 6 + [2.0] * 6)
    uneven = [2, 4] if rank == 0 else [4, 2]
    follows(lambda: group.all_to_all_v(data, uneven, out, uneven, stream=stream),
            [1.0] * uneven[0] + [2.0] * uneven[1])
    if rank == 0: follows(lambda: (group.send(data, 1, stream=stream), data)[1], [1.0] * 6)
    else: follows(lambda: group.recv(out, 0, stream=stream), [1.0] * 6)
    try: group.send(data, other, tag=3, stream=stream)
    except ValueError as error: assert "tag 3 with stream=" in str(error)
    else: raise AssertionError
    group.barrier()
    """
    code, lines, errors = run(2, code, program="import numpy as np, waywiser as ww\n")
    assert (code, lines) == (0, []), errors


def test_windows_of_the_host_and_of_gpus() -> None:
    code = """
    gpus = ww.virtual_gpus(2)
    group = ww.join(gpus=gpus)
    other = 1 - group.rank
    values = np.arange(4.0) + 10 * group.rank
    for array in (np.zeros(8), gpus.array(np.zeros(8), group.rank)):
        on_gpu = isinstance(array, ww.GpuArray)
        window = group.expose(array)
        assert (window.bytes_of(other), window.array is array) == (64, True)
        group.put(gpus.array(values, group.rank) if on_gpu else values, window, other, 8)
        group.signal(window, other, 56, 9)
        group.wait(window, 56, 9)
        seen = array.numpy() if on_gpu else array
        assert seen[1:5].tolist() == (np.arange(4.0) + 10 * other).tolist()
        group.barrier()
        back = group.get(gpus.empty(4, gpu=group.rank) if on_gpu else np.empty(4), window, other, 8)
        assert (back.numpy() if on_gpu else back).tolist() == values.tolist()
        group.flush()
        group.barrier()
        try: group.put(values, window, other, 40)
        except Exception as error: assert "bytes 40 to 72 are not within the 64" in str(error)
        else: raise AssertionError
    """
    code, lines, errors = run(2, code, program="import numpy as np, waywiser as ww\n")
    assert (code, lines) == (0, []), errors


def test_arrays_by_either_protocol(alone: ww.Group, gpus: ww.Gpus) -> None:
    source, target = gpus.array(np.arange(5, dtype=np.float32), 1), gpus.empty(5, np.float32, 1)
    for wrapped in (OnlyInterface, OnlyDlpack):
        target.fill(0)
        alone.all_reduce(wrapped(source), wrapped(target))
        assert target.numpy().tolist() == [0, 1, 2, 3, 4]
    host = np.empty(5, np.float32)
    alone.all_reduce(OnlyInterface(source, strides=(4,), version=2), host)
    assert host.tolist() == [0, 1, 2, 3, 4]
    part = OnlyInterface(source, shape=(2,), data=(source.__cuda_array_interface__["data"][0] + 8, True))
    assert alone.all_reduce(part, np.empty(2, np.float32)).tolist() == [2, 3]


def test_gpu_arrays_that_cannot_be_sent_are_refused_in_words(alone: ww.Group, gpus: ww.Gpus) -> None:
    array, stranger = gpus.array(np.zeros((4, 4))), ww.virtual_gpus(1).array(np.zeros(3))
    address = array.__cuda_array_interface__["data"][0]
    for bad, words in (
        (OnlyInterface(array, strides=(8, 32)), "is not contiguous"),
        (OnlyInterface(array, typestr="<c32"), "of a type that cannot be sent"),
        (OnlyInterface(array, typestr=">f8"), "of a type that cannot be sent"),
        (OnlyInterface(array, version=1), "of version 1: 2 and 3 are understood"),
        (OnlyInterface(array, mask=array), "is masked"),
        (OnlyInterface(array, data=(address, True)), "cannot be written to"),
        (OnlyInterface(array, data="here"), "cannot be understood"),
        (stranger, "that the GPUs of this group (virtual_gpu) do not have"),
    ):
        with pytest.raises(RuntimeError, match="an array was expected, '") as caught:
            alone.broadcast(bad)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_the_stream_of_an_interface_is_respected(alone: ww.Group, gpus: ww.Gpus) -> None:
    """Virtual GPUs have no streams of other libraries: being asked for one shows that it was looked at."""
    array = gpus.array(np.zeros(3))
    for stream in (1, 1 << 40):
        with pytest.raises(RuntimeError, match="no streams of gpu0 that another library could own"):
            alone.all_reduce(OnlyInterface(array, stream=stream), OnlyInterface(array))
    alone.all_reduce(OnlyInterface(array, stream=None), OnlyInterface(array))


def test_a_window_of_gpu_memory_that_another_library_owns(alone: ww.Group, gpus: ww.Gpus) -> None:
    array = gpus.array(np.zeros(5))
    window = alone.expose(OnlyInterface(array))
    assert window.bytes_of(0) == 40
    alone.put(gpus.array([1.0, 2.0]), window, 0, 16)
    alone.signal(window, 0, 0, 7)
    alone.wait(window, 0, 7)
    assert array.numpy()[1:].tolist() == [0, 1, 2, 0] and array.numpy()[:1].view(np.uint64)[0] == 7


def test_an_array_of_a_gpu_needs_gpus(monkeypatch: pytest.MonkeyPatch, gpus: ww.Gpus) -> None:
    if ww.find_gpus().backend == "cuda":
        pytest.skip("there are real GPUs")
    with pytest.raises(RuntimeError, match="no CUDA device: "):
        ww.join().broadcast(gpus.array(np.zeros(3)))


def test_what_a_gpu_array_is(gpus: ww.Gpus) -> None:
    array = gpus.array([[1, 2], [3, 4]], gpu=1)
    assert (array.shape, array.dtype, array.size, array.nbytes, array.gpu) == ((2, 2), np.int64, 4, 32, 1)
    assert repr(array) == "<waywiser.GpuArray: (2, 2) of int64 on gpu1 (virtual_gpu)>"
    assert (len(gpus), gpus.backend) == (2, "virtual_gpu")
    array.fill([7, 8])
    assert array.numpy().tolist() == [[7, 8], [7, 8]]
    assert gpus.empty((0, 3)).numpy().shape == (0, 3)
    assert array.__dlpack_device__() == (2, 1)
    for shape, gpu in ((1 << 40, 0), (1, 5)):
        with pytest.raises(RuntimeError, match=r"gpu0: cannot allocate|there is no gpu5"):
            gpus.empty(shape, gpu=gpu)


def test_streams_of_any_library() -> None:
    assert stream_number(7) == 7
    assert stream_number(SimpleNamespace(cuda_stream=8)) == 8
    assert stream_number(SimpleNamespace(ptr=9)) == 9
    assert stream_number(SimpleNamespace(__cuda_stream__=lambda: (0, 10))) == 10
    with pytest.raises(TypeError, match="not a str"):
        stream_number("fast")
