"""Files of simulated machines: laws of the model, what a machine file says, and what is told of it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from verb_runs import Run

from waywiser.errors import InputError
from waywiser.simulator.storage import Storage, seconds, storage_of
from waywiser.topology import load_topology
from waywiser.tune.storage_simulated import ALL_SERVE, simulated_times
from waywiser.tune.storage_ways import GPU, HOST, MANY, WORKS, ways_of

MACHINE = "dgx-h100"
SIZES = [4096 << bits for bits in range(15)]
OWN = {"read_rate": "2e9", "write_rate": "1e9", "read_latency": "1e-4", "write_latency": "2e-5", "devices": "2"}


def the(asked: str) -> Storage:
    return storage_of(load_topology(MACHINE), asked)


def with_storage(tmp_path: Path, **attributes: str) -> Path:
    """A machine file whose nodes have a file system of their own."""
    machine = json.loads(load_topology(MACHINE).to_json())
    machine["devices"].append({"id": "storage0", "kind": "storage", "name": "/data", "attributes": attributes})
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(machine))
    return file


@pytest.mark.parametrize("asked", ["nvme-gen3", "8 x nvme-gen4", "nfs-100g"])
@pytest.mark.parametrize("memory", [HOST, GPU])
@pytest.mark.parametrize("work", WORKS)
def test_more_bytes_take_no_less_time_and_more_devices_no_more(asked: str, memory: str, work: str) -> None:
    one, more = the(asked), the("64 x nvme-gen5")
    for way in ways_of(memory, work, 64 << 20, ALL_SERVE, 64):
        times = [seconds(one, memory, work, way, size) for size in SIZES]
        assert all(early <= late * 1.000001 for early, late in itertools.pairwise(times)), way
        if work != MANY and asked != "nfs-100g":
            assert all(
                seconds(more, memory, work, way, size) <= taken for size, taken in zip(SIZES, times, strict=True)
            )
        # No device, no link and no copy is faster than it can be.
        if work == "file_read" and way.startswith(("direct", "io_uring", "cufile")):
            assert times[-1] >= SIZES[-1] / (one.devices * one.values["read_rate"]), way
        if memory == GPU and one.link_rate is not None:
            assert times[-1] >= SIZES[-1] / one.link_rate, way


def test_a_machine_file_says_what_its_storage_is(tmp_path: Path) -> None:
    file = with_storage(tmp_path, **OWN)
    found = storage_of(load_topology(str(file)), "storage0")
    assert found.devices == 2 and found.values["read_rate"] == 2e9
    assert [one["parameter"] for one in found.assumed] == ["read_iops", "write_iops", "host.copy_rate"]
    assert load_topology(str(file)).fingerprint == load_topology(MACHINE).fingerprint
    times = simulated_times(str(file), "storage0")
    assert times.simulated is not None and times.storage == "storage storage0, simulated"
    with pytest.raises(InputError, match="read_rate = 'fast' is not a number above 0"):
        storage_of(load_topology(str(with_storage(tmp_path, read_rate="fast"))), "storage0")


def test_rows_are_told_as_simulated_and_kept_apart(tmp_path: Path, run: Run) -> None:
    words = ("tune", "--storage", "4 x nvme-gen4", "--machine", MACHINE, "-r", str(tmp_path))
    code, out, error = run(*words)
    assert code == 0 and "SIMULATED: not a measurement" in out
    assert "not known for 4 x nvme-gen4: read latency; assumed: 8e-05" in " ".join(error.split())
    told = json.loads(run(*words, "--json")[1])
    assert told["simulated"] is True and {row["memory"] for row in told["rows"]} == {HOST, GPU}
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["simulated"] is True and plan["fingerprint"] == load_topology(MACHINE).fingerprint
    code, out, _ = run("explain", "read", "4 x nvme-gen4", "64M", "-r", str(tmp_path))
    assert code == 0
    for memory in ("host", "GPU"):
        assert out.count(f"file read of 64 MiB, storage 4 x nvme-gen4, simulated, {memory} memory") == 1
    code, _, error = run("tune", "--storage", str(tmp_path), "-r", str(tmp_path), "--budget", "1")
    assert code == 2 and "is not measured on this machine" in error


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("tape", "--storage 'tape': dgx-h100 has nvme-gen3, nvme-gen4, nvme-gen5, nfs-100g; also 4 x KIND, a RAID 0"),
        ("0 x nvme-gen4", "1 to 1024 devices"),
        ("x" * 500, "--storage 'xxx"),
    ],
)
def test_wrong_words_are_one_line(tmp_path: Path, run: Run, asked: str, said: str) -> None:
    code, out, error = run("tune", "--storage", asked, "--machine", MACHINE, "-r", str(tmp_path))
    assert (code, out) == (2, "") and said in " ".join(error.split()) and error.count("\n") == 1, error
