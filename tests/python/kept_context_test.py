"""on_failure="raise" from Python, on virtual GPUs: the results of a failed call are NaN or -1, and the GPU goes on."""

from __future__ import annotations

import pytest
from rank_jobs import run, runtime_folder

__all__ = ["runtime_folder"]
PROGRAM = "import contextlib, os, signal, numpy as np, waywiser as ww\n"
BEGIN = """
    gpus = ww.virtual_gpus(2)
    group = ww.join(gpus=gpus, on_failure="raise")
    me = group.rank
    stream = gpus.open_stream(me)
    give, take = (gpus.array(np.full({count}, value, "{kind}"), me) for value in (1, 77))
    halo = group.prepare_exchange([ww.Exchange(1 - me, give=give, take=take)])
    def call():
        {call}
    call()
    group.synchronize(take, stream=stream)
    assert (take.numpy() == {right}).all()
    take.fill(77)
    if me == 1:  # dies when rank 0 is known to have enqueued its call
        group.recv(np.empty(1), 0)
        os.kill(os.getpid(), signal.SIGKILL)
    call()
    with contextlib.suppress(ww.TransferError):  # rank 1 may end before this returns
        group.send(np.ones(1), 1)
    stream.synchronize()
    got = take.numpy()
    assert (got == -1).all() if got.dtype.kind == "i" else np.isnan(got).all(), got
    assert (give.numpy() == 1).all()
    assert (gpus.array(np.arange(9), me).numpy() == np.arange(9)).all()
    for later in (call, group.barrier):
        try:
            later()
        except ww.TransferError as error:
            assert "rank 1 (process" in str(error), error
        else:
            raise AssertionError("nothing was raised")
    print("goes on")
"""
CALLS = {
    "all_reduce": ("group.all_reduce(give, take, stream=stream)", 2),
    "all_to_all": ("group.all_to_all(give, take, stream=stream)", 1),
    "a prepared exchange": ("halo.start(stream=stream)", 1),
    "a message": ("group.sendrecv(give, 1 - me, take, 1 - me, stream=stream)", 1),
}


@pytest.mark.faults("gpus V")
@pytest.mark.parametrize(("count", "kind"), [(6, "i8"), (50_000, "f4")])
@pytest.mark.parametrize("what", CALLS)
def test_the_gpu_goes_on_without_a_result(what: str, count: int, kind: str) -> None:
    call, right = CALLS[what]
    code, lines, errors = run(
        2, BEGIN.format(count=count, kind=kind, call=call, right=right), "--keep-going", program=PROGRAM
    )
    assert (code, lines) == (137, ["goes on"]), errors
    assert "rank 1 (process" in errors and "is gone" in errors, errors
