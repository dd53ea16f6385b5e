"""Exchanges that are prepared once: `group.prepare_exchange`."""

from __future__ import annotations

from rank_jobs import run, runtime_folder

__all__ = ["runtime_folder"]


def test_prepared_on_hosts() -> None:
    code = """
    rank, size = group.rank, group.size
    right, left = (rank + 1) % 3, (rank + 2) % 3
    mine, ints = np.zeros(5), np.zeros(4, np.int32)
    from_left, from_right = np.empty(5), np.empty(4, np.int32)
    with_left = ww.Exchange(left, ints, from_left, give_tag=1, take_tag=2)
    prepared = group.prepare_exchange([with_left, ww.Exchange(right, mine, from_right, 2, 1)])
    for start in range(100):
        mine[:], ints[:] = rank + start, 10 * rank + start
        if start % 2:
            prepared()
        else:
            prepared.start()
            prepared.wait()
        assert (from_left == left + start).all() and (from_right == 10 * right + start).all()
    assert prepared.why_staged == ""
    try: prepared.start(stream=0)
    except Exception as error: print(error)
    """
    assert run(3, code) == (0, ["a prepared exchange of host arrays is started without stream="] * 3, "")


def test_prepared_on_gpus_and_streams() -> None:
    code = """
    gpus = ww.virtual_gpus(3)
    group = ww.join(gpus=gpus)
    rank, gpu = group.rank, group.rank
    right, left = (rank + 1) % 3, (rank + 2) % 3
    mine, out = gpus.array([rank + 1.0] * 6, gpu), [gpus.array([9.0] * 6, gpu) for _ in range(2)]
    stream = gpus.open_stream(gpu)
    prepared = group.prepare_exchange([ww.Exchange(left, mine, out[0]), ww.Exchange(right, mine, out[1])])
    assert prepared.why_staged == "", prepared.why_staged
    for start in range(20):
        for array in out: array.fill(9.0)
        if start % 2:
            prepared.start(stream=stream)
            group.synchronize(mine, stream=stream)
        else:
            prepared()
        assert out[0].numpy().tolist() == [left + 1.0] * 6 and out[1].numpy().tolist() == [right + 1.0] * 6
    group.barrier()
    """
    assert run(3, code, program="import numpy as np, waywiser as ww\n")[:2] == (0, [])


def test_what_does_not_fit_is_told_when_it_is_prepared() -> None:
    code = """
    gpus = ww.virtual_gpus(2)
    group = ww.join(gpus=gpus)
    rank, gpu, other = group.rank, group.rank, 1 - group.rank
    mine, out = gpus.array([1.0] * (2 + rank), gpu), gpus.array([9.0] * 2, gpu)
    try: group.prepare_exchange([ww.Exchange(other, mine, out)])
    except Exception as error: print(error)
    """
    why = "rank 1 sends 1 messages of 24 bytes to rank 0, which takes 1 messages of 16 bytes"
    ended, lines, _ = run(2, code, program="import numpy as np, waywiser as ww\n")
    assert (ended, [line.split(": ", 1)[1] for line in lines]) == (0, [why] * 2)
