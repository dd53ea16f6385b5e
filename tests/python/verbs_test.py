"""The verbs on made-up results: their output, their files, their exit codes."""

from __future__ import annotations

import csv
import io
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import made_up
import pytest
from fake_core import FakeCore, gpu_core

from waywiser.cli import run
from waywiser.report.profile_table import CSV_COLUMNS

__all__ = ["gpu_core"]

KEYS = [
    "machine",
    "seconds",
    "paths_measured",
    "paths_unavailable",
    "cases",
    "within_5_percent",
    "worst_ratio",
    "report",
    "profile",
    "plan",
]


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    fake = FakeCore(gpus=0)
    fake.install(monkeypatch)
    return fake


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes seconds, and says nothing of the verbs."""
    monkeypatch.setattr("waywiser.report.pictures.write_pictures", lambda *_: [])


@pytest.fixture
def no_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake core's collectives are timed by real ranks; one test does that."""
    monkeypatch.setattr("waywiser.cli.tune.collectives_into", lambda *_: None)


@pytest.mark.slow
def test_tune_prints_one_object(core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tune", "--json", "--results", str(tmp_path / "new" / "out")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer) == KEYS
    assert answer["paths_measured"] == 8
    assert answer["paths_unavailable"] == 1
    assert 0.9 < answer["within_5_percent"] <= 1
    assert 1 <= answer["worst_ratio"] < 1.1
    assert all(Path(answer[key]).is_file() for key in ("report", "profile", "plan"))
    assert list((tmp_path / "new" / "out" / "plots").glob("*.png"))


@pytest.mark.usefixtures("no_pictures", "no_collectives")
def test_tune_passes_its_budget_on(core: FakeCore, tmp_path: Path) -> None:
    assert run(["tune", "--quick", "--budget", "50", "--results", str(tmp_path)]) == 0
    options = dict(core.calls)
    assert options["measure"][0]["budget_seconds"] == pytest.approx(32.5)
    assert options["measure"][0]["quick"] is True
    assert options["verify"]["budget_seconds"] == pytest.approx(17.5)


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_summary_has_at_most_40_lines(
    gpu_core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = [{**gpu_core.profile["unavailable"][0], "mechanism": f"m{index}"} for index in range(30)]
    gpu_core.profile["unavailable"] += reasons
    for width in ("80", "120"):
        monkeypatch.setenv("COLUMNS", width)
        assert run(["tune", "--results", str(tmp_path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 40
        assert all(len(line) <= int(width) for line in lines if not line.startswith("report:"))
        assert sum(line.startswith("unavailable:") for line in lines) == 4
    assert "within 5 %" in "\n".join(lines)
    assert (tmp_path / "peers.json").exists()


@pytest.mark.usefixtures("no_pictures", "no_collectives")
def test_without_gpu_it_says_how_to_see_one(core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tune", "--results", str(tmp_path)]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "no GPU here" in line and "waywiser demo" in line]


@pytest.mark.parametrize("verb", ["tune", "measure"])
def test_other_machine_with_a_back_end_of_this_one_is_refused(
    verb: str, core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([verb, "--machine", "dgx-1v", "--backend", "cuda", "--results", str(tmp_path / "out")]) == 2
    assert "it cannot measure --machine dgx-1v" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_measure_goes_on_from_what_is_there(core: FakeCore, tmp_path: Path) -> None:
    for flags in ([], [], ["--fresh"]):
        assert run(["measure", "--results", str(tmp_path), *flags]) == 0
    previous = [call[1][1] for call in core.calls]
    assert previous[0] is None
    assert json.loads(previous[1]) == core.profile
    assert previous[2] is None


@pytest.mark.parametrize("verb", ["measure", "tune"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_measuring_keeps_the_profile(
    core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, number: signal.Signals
) -> None:
    core.interrupt_at, core.interrupt_by = 2, number
    assert run([verb, "--results", str(tmp_path)]) == 128 + number
    assert "interrupted" in capsys.readouterr().err.splitlines()[-1]
    kept = json.loads((tmp_path / "profile.json").read_text())
    assert kept["series"] == core.profile["series"][:8]
    core.interrupt_at = None
    assert run(["measure", "--results", str(tmp_path)]) == 0
    assert json.loads(core.calls[-1][1][1])["series"] == kept["series"]


def test_one_process_at_a_time_measures_into_a_folder(
    core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "import sys, time\nfrom waywiser.results import Results\nfrom pathlib import Path\n"
    program += f"with Results(Path({str(tmp_path)!r})).held(): print('held', flush=True), sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        for verb in ("measure", "tune"):
            assert run([verb, "--results", str(tmp_path)]) == 2
            said = capsys.readouterr().err
            assert (
                f"process {other.pid} on {socket.gethostname()} is measuring into it" in said and said.count("\n") == 1
            )
        other.kill()
    assert run(["measure", "--results", str(tmp_path)]) == 0
    assert not (tmp_path / ".measuring").exists()


def test_a_failure_keeps_what_was_saved_before(core: FakeCore, tmp_path: Path) -> None:
    core.fail_at = 3
    assert run(["measure", "--results", str(tmp_path)]) == 1
    assert json.loads((tmp_path / "profile.json").read_text())["series"] == core.profile["series"][:2]


def test_measure_as_csv(core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", "--format", "csv", "--results", str(tmp_path)]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert len(rows) == sum(len(one["points"]) for one in core.profile["series"])
    first = core.profile["series"][0]["points"][0]
    assert float(rows[0]["seconds"]) == first["seconds"]
    assert rows[0]["verified"] == "true"


def test_how_many_pairs_were_loaded(
    gpu_core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert run(["measure", "--format", "csv", "--results", str(tmp_path)]) == 0
    rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
    found = {(row["processes"], row["source"][:3], row["operation"], row["pairs_at_once"]) for row in rows}
    assert ("2", "gpu", "loaded", "8") in found
    assert ("2", "gpu", "streaming", "") in found
    assert run(["measure", "--format", "table", "--results", str(tmp_path)]) == 0
    assert "loaded (8 of 12 pairs at once)" in capsys.readouterr().out
    assert run(["plan", "--results", str(tmp_path)]) == 0
    assert "GPU to GPU, NV18, two processes, loaded (8 of 12 pairs at once)" in capsys.readouterr().out


def test_measure_as_json_and_table(core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", "--format", "json", "--results", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == core.profile
    assert run(["measure", "--format", "table", "--results", str(tmp_path)]) == 0
    table = capsys.readouterr().out
    assert "host_copy" in table
    assert "1 GiB" in table


@pytest.mark.usefixtures("no_pictures", "no_collectives")
def test_virtual_gpus_are_labelled_and_never_mixed(
    core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real, virtual = str(tmp_path / "real"), str(tmp_path / "virtual")
    assert run(["measure", "--results", real]) == 0
    assert run(["measure", "--backend", "virtual_gpu", "--results", real]) == 2
    assert "--results" in capsys.readouterr().err.splitlines()[-1]
    core.profile["backend"] = "virtual_gpu"
    assert run(["tune", "--backend", "virtual_gpu", "--results", virtual]) == 0
    assert "VIRTUAL GPUS: NOT A MEASUREMENT OF ANY GPU" in capsys.readouterr().out
    assert 'class="banner"' in (tmp_path / "virtual" / "report.html").read_text()
    assert run(["measure", "--results", virtual]) == 2


def test_another_machines_profile_is_set_aside(core: FakeCore, tmp_path: Path) -> None:
    assert run(["measure", "--results", str(tmp_path)]) == 0
    core.profile = {**core.profile, "fingerprint": "another"}
    assert run(["measure", "--results", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "profile-madeup0.json").read_text())["fingerprint"] == "made-up-0"
    assert json.loads((tmp_path / "profile.json").read_text())["fingerprint"] == "another"


def test_plan_writes_and_prints(core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.write(tmp_path / "from", gpus=0)
    source = str(tmp_path / "from" / "profile.json")
    assert run(["plan", "--profile", source, "--results", str(tmp_path / "to")]) == 0
    assert "and more" in capsys.readouterr().out
    assert json.loads((tmp_path / "to" / "plan.json").read_text())["schema"] == "waywiser.plan"


def test_recorded_machines(gpu_core: FakeCore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    folder = made_up.write(tmp_path / "machines" / "recorded-4xmadeup")
    text = (folder / "profile.json").read_bytes()
    (folder / "profile.json.gz").write_bytes(gzip.compress(text))
    (folder / "profile.json").unlink()
    monkeypatch.setattr("waywiser.results.MACHINES", tmp_path / "machines")
    for verb in (
        ["plan"],
        ["explain", "gpu0", "gpu1", "1M"],
        ["report", "--no-pictures", "-o", str(tmp_path / "page")],
    ):
        assert run([*verb, "--machine", "recorded-4xmadeup"]) == 0
    assert (tmp_path / "page" / "report.html").exists()
    assert sorted(file.name for file in folder.iterdir()) == [
        "plan.json",
        "profile.json.gz",
        "topology.json",
        "verification.json",
    ]
