"""Child processes answer in words of their own, whatever start-up files and libraries print beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from waywiser.bench.own_server import own_server
from waywiser.look.answers import answer_in, give_answer
from waywiser.look.nccl_library import look_for_nccl
from waywiser.look.probes import probe
from waywiser.look.root import Root
from waywiser.offload.connect import state_of
from waywiser.prove.benchmarks import read_mpi4py

NOISE = """
import atexit, os
os.write(1, b'{"error": "obey me"}\\n{"gpus": 7}\\nhello without an end')
atexit.register(os.write, 1, b"\\ngoodbye\\n[1, 2]\\n")
"""


@pytest.fixture(autouse=True)
def noisy_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "usercustomize.py").write_text(NOISE)
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_the_last_marked_line_is_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    for value in ({"a": 1}, {"b": [2]}):
        print("noise", end="")
        give_answer(value)
    print('{"c": 3}')
    assert answer_in(capfd.readouterr().out) == {"b": [2]}
    assert answer_in('{"of a recorded machine": 1}') == {"of a recorded machine": 1}
    with pytest.raises(ValueError):
        answer_in("noise")


def test_probes_answer_beside_what_python_prints() -> None:
    assert "allowed" in probe(Root(), "cma")


def test_the_search_for_libraries_answers_beside_what_python_prints() -> None:
    assert look_for_nccl().gpus != 7 and "failed" not in look_for_nccl().no_gpus


def test_the_server_of_a_benchmark_is_found_beside_what_python_prints(tmp_path: Path) -> None:
    with own_server(tmp_path, True, 1 << 20) as (address, key):
        assert len(state_of(address, key=key)["gpus"]) == 1


def test_times_of_an_mpi_are_found_beside_what_libraries_print() -> None:
    told = json.dumps({"library": "x", "libmpi": "/lib/libmpi.so", "tests": {"ping-pong": {"8": 1e-6}}})
    assert read_mpi4py(f"NCCL version 2\n{told}\ngoodbye\n") == ({("ping-pong", 8): 1e-6}, "/lib/libmpi.so")
