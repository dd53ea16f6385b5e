"""What a program sends, as `verify -- PROGRAM` says it; how settings reach its ranks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from rank_jobs import HAS_MPI4PY, MPIRUN, runtime_folder

from waywiser.apply.setting import Setting, Settings
from waywiser.errors import InputError
from waywiser.prove import program_sent
from waywiser.prove.message_sizes import recorded_sizes
from waywiser.prove.program_proof import OURS, Metric, ProgramProof, launched, name_of, prove_program, record_program
from waywiser.prove.program_sent import Sent
from waywiser.running.mechanisms import Moved

__all__ = ["runtime_folder"]
# What Open MPI 5.0.11 has written: 16 messages of 1 MiB, 10 of 800 bytes.
MONITORED = "E\t0\t1\t16777216 bytes\t16 msgs sent\t0,0,0,0,0,0,0,0,0,0,10,0,0,0,0,0,0,0,0,0,0,16,0,0,0,0\n"
# Made up, in the words of NCCL: 1 Mi floats, twice.
COLLECTIVE = (
    "n1:7:9 [0] NCCL INFO AllReduce: opCount {} sendbuff 0x1 recvbuff 0x2 acc (nil) count 1048576 datatype 7 op 0\n"
)
# Each rank sends 1 MiB and 800 bytes, then waits until somebody opens the pipe to write.
PROGRAM = """
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
for size in (1 << 20, 800):
    world.Sendrecv(bytearray(size), 1 - world.rank, recvbuf=bytearray(size), source=1 - world.rank)
if world.rank == 0: open(sys.argv[1]).read()
world.Barrier()
"""


def test_sizes_of_messages_are_read_from_what_libraries_write(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"mpi.{rank}.prof").write_text(
            "# POINT TO POINT\n" + MONITORED + "I\t0\t1\t8000 bytes\t10 msgs sent\n"
        )
    (tmp_path / "nccl.7.log").write_text(COLLECTIVE.format(0) + "noise \x00\n" + COLLECTIVE.format(1))
    found = recorded_sizes(tmp_path)
    assert [one.text for one in found] == [
        "MPI messages: 20 of 512 B to 1 KiB, 32 of 1 MiB to 2 MiB", "NCCL AllReduce: 2 of 4 MiB to 8 MiB"
    ]  # fmt: skip
    row = {"kind": "NCCL AllReduce", "from": 4 << 20, "below": 8 << 20, "messages": 2}
    assert found[1].rows() == [row]


@pytest.mark.skipif(not (HAS_MPI4PY and MPIRUN), reason="mpi4py or mpirun is missing")
@pytest.mark.slow
def test_each_variant_of_a_program_of_mpi_is_seen_with_its_mechanism_and_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    look = program_sent._Looks.__call__

    def look_and_go_on(self: program_sent._Looks, process: int) -> None:
        """The ranks go on once something was seen between them, of TCP all that they have sent until then."""
        look(self, process)
        seen = list(program_sent.mechanisms(self.best)) if self.best is not None and self.count else []
        if seen and all((one.bytes or 0) >= 2 << 20 for one in seen if one.mechanism.startswith("TCP")):
            try:
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:  # rank 0 does not read yet
                return

    monkeypatch.setattr(program_sent._Looks, "__call__", look_and_go_on)
    command = [*MPIRUN, "-n", "2", sys.executable, "-c", PROGRAM, str(pipe)]
    found = record_program(command, {"OMPI_MCA_btl": "tcp,self"}, print)
    by = {name: {one.mechanism: one.bytes for one in sent.moved} for name, sent in found.items()}
    assert by["default"] == {"shared memory: Open MPI's btl sm": None}
    assert 2 << 20 <= (by[OURS]["TCP over lo"] or 0) < 3 << 20
    for sent in found.values():
        assert sent.lost == () and sent.looks > 0
        (sizes,) = sent.sizes
        assert (sizes.counts[10], sizes.counts[21]) == (2, 2), "800 bytes and 1 MiB, from each rank"


def program(file: Path, text: str) -> str:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_settings_reach_ranks_on_other_machines(tmp_path: Path) -> None:
    settings = {"UCX_TLS": "rc", "OMPI_MCA_btl": "^tcp"}
    mpirun = program(tmp_path / "mpirun", "echo 'mpirun (Open MPI) 5.0.1'")
    assert launched([mpirun, "-n", "2", "a"], settings) == [mpirun, "-x", "UCX_TLS", "-n", "2", "a"]
    assert launched([mpirun, "a"], {}) == [mpirun, "a"], "the defaults"
    hydra = program(tmp_path / "mpiexec", "echo 'HYDRA build details'")
    assert launched([hydra, "a"], settings) == [hydra, "a"]
    for words in (["-n2", "a"], ["--export=ALL,X=1", "a"], ["--export", "ALL", "a"]):
        assert launched(["srun", *words], settings) == ["srun", *words]
    for words in (["--export=NONE", "a"], ["--export", "PATH", "a"]):
        with pytest.raises(InputError, match="keeps the settings from the ranks: write --export=ALL"):
            launched(["srun", *words], settings)


def test_without_the_settings_at_each_rank_there_is_no_verdict() -> None:
    settings = Settings("f", "here", settings=(Setting("ucx", "UCX_TLS", "x", "", "made up", "UCX_TLS", proof="won"),))
    proof = prove_program(
        lambda variables: {("program", 0): 1.0 if variables else 2.0}, {"UCX_TLS": "x"}, 4, lambda _: None
    )
    moved = Moved("TCP over lo", "ranks 0 and 1", 5 << 20, 0.0, "kernel")
    sent = {OURS: Sent((moved,), "no device's counter moved", (), 3, (1,)), "default": Sent((), "", (), 0)}
    one = ProgramProof("p", ["p"], Metric.of("", False), settings, proof, sent)
    told = one.lines()
    assert told[3] == "proved settings: no verdict: rank 1 did not get the settings; gain 2.000 x, noise 1.000 x"
    assert told[4:6] == ["proved settings: what it sends", "    TCP over lo, ranks 0 and 1: 5 MiB"]
    assert "    not seen: it ended before it could be looked at" in told
    assert json.loads(one.as_json())["verdict"].startswith("no verdict")


@pytest.mark.parametrize(
    ("told", "slurm", "name"), [("mine", "batch", "mine"), ("", "batch", "batch"), ("", "", Path(__file__).name)]
)
def test_the_name_of_a_program(told: str, slurm: str, name: str) -> None:
    assert name_of(["mpirun", "-n", "2", "python", __file__], told, {"SLURM_JOB_NAME": slurm}) == name
