"""Which of the settings that are kept for a kind of machine a node is given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from waywiser import _core, cli
from waywiser.apply.hand_out import hand_out
from waywiser.apply.setting import LeftOut, Setting, Settings, read_settings
from waywiser.apply.store import file_of, keep, kept
from waywiser.errors import InputError
from waywiser.prove.prove import with_verdicts_of

pytestmark = pytest.mark.slow


def one(name: str, target: str = "ucx", value: str = "1", **more: object) -> Setting:
    fields = {"default": "", "why": "told", "group": name, **more}
    return Setting(target, name, value, **fields)  # type: ignore[arg-type]


MEASURED = one("UCX_POSIX_BW")
PREDICTED = one("UCX_CMA_BW", measured=False)
TRIED_BY_HAND = one("UCX_SYSV_BW", measured=False, proof="1.2 x the speed")
NETWORK = one("UCX_TCP_MAX_BW")
DECIDED_BY_NONE = [
    one("UCX_IB_GPU_DIRECT_RDMA"),
    one("UCX_DISTANCE_BW"),
    one("UCX_RNDV_MEMTYPE_DIRECT_SIZE"),
    one("NCCL_IB_HCA", "nccl"),
    one("NCCL_TOPO_FILE", "nccl"),
    one("MPIR_CVAR_GPU_FAST_COPY_MAX_SIZE_H2D", "mpich"),
]
GPU = one("UCX_CUDA_IPC_BW")
LABEL = "Simulated: not a measurement"
ALL = Settings("abcd1234", "node", settings=(MEASURED, PREDICTED, TRIED_BY_HAND, NETWORK, GPU, *DECIDED_BY_NONE))


def names(settings: Settings) -> list[str]:
    return [one.name for one in settings.settings]


def test_what_was_measured_and_can_be_refuted_is_given() -> None:
    given, withheld = hand_out(ALL)
    assert names(given) == ["UCX_POSIX_BW", "UCX_SYSV_BW", "UCX_TCP_MAX_BW", "UCX_CUDA_IPC_BW"]
    why = {one.name: one.why for one in withheld}
    assert set(why) == {"UCX_CMA_BW", *(one.name for one in DECIDED_BY_NONE)}
    assert "a prediction, not measured; --accept-simulated" in why.pop("UCX_CMA_BW")
    assert all(text.startswith("cannot be proved: ") for text in why.values()), why


def test_predictions_are_given_to_who_accepts_them_and_groups_stay_together() -> None:
    assert "UCX_CMA_BW" in names(hand_out(ALL, accept_simulated=True)[0])
    pair = (replace(MEASURED, group="x"), replace(PREDICTED, group="x"))
    assert hand_out(replace(ALL, settings=pair))[0].settings == ()
    assert hand_out(replace(ALL, settings=pair), True)[0].settings == pair


def test_the_source_stands_in_the_file() -> None:
    simulated = replace(ALL, label=LABEL)
    assert json.loads(ALL.to_json())["source"] == "measured"
    assert json.loads(simulated.to_json())["source"] == "simulated"
    assert read_settings(json.loads(simulated.to_json()), "x") == simulated
    told = {**json.loads(ALL.to_json()), "source": "simulated"}
    assert read_settings(told, "x").source == "simulated"
    with pytest.raises(InputError, match="source: must be one of measured, simulated"):
        read_settings({**told, "source": "dreamt"}, "x")


def test_simulated_settings_do_not_replace_measured_ones(tmp_path: Path) -> None:
    simulated = replace(ALL, label=LABEL)
    keep(tmp_path, simulated)
    keep(tmp_path, ALL)
    with pytest.raises(InputError, match="holds measured settings"):
        keep(tmp_path, simulated)
    assert kept(tmp_path, "abcd1234") == ALL


def test_the_libraries_own_files_hold_what_is_given(tmp_path: Path) -> None:
    keep(tmp_path, ALL)
    text = (tmp_path / "settings/abcd1234.ucx.conf").read_text()
    assert "\nUCX_POSIX_BW=1\n" in text and "\nUCX_CMA_BW" not in text
    assert "# not exported: UCX_CMA_BW=1: a prediction" in text
    assert not (tmp_path / "settings/abcd1234.nccl.conf").exists()


def test_verdicts_outlive_another_apply() -> None:
    with_ucx = replace(ALL, versions={"ucx": "1.13 (/lib/libucp.so)"}, settings=(MEASURED, NETWORK))
    lost = LeftOut("ucx", "UCX_POSIX_BW", "1", "does not win beyond the noise", refuted=True)
    before = replace(with_ucx, settings=(replace(NETWORK, proof="1.3 x the speed"),), left_out=(lost,), proved=True)
    assert read_settings(json.loads(before.to_json()), "x") == before
    again = with_verdicts_of(before, with_ucx)
    assert (names(again), again.settings[0].proof, again.left_out) == (["UCX_TCP_MAX_BW"], "1.3 x the speed", (lost,))
    assert again.proved
    other_value = replace(with_ucx, settings=(replace(MEASURED, value="2"), replace(NETWORK, value="2")))
    assert with_verdicts_of(before, other_value) == other_value
    other_version = replace(with_ucx, versions={"ucx": "1.18 (/lib/libucp.so)"})
    assert with_verdicts_of(before, other_version) == other_version
    assert with_verdicts_of(None, with_ucx) == with_ucx


def test_env(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(tmp_path, replace(ALL, label=LABEL, settings=(PREDICTED,)))
    command = ["env", "--results", str(tmp_path), "--fingerprint", "abcd1234"]
    assert cli.run(command) == 0
    out = capsys.readouterr().out
    assert "export " not in out and f"# {LABEL}" in out
    assert "# not exported: UCX_CMA_BW=1: a prediction, not measured; --accept-simulated exports it" in out
    assert cli.run([*command, "--accept-simulated"]) == 0
    out = capsys.readouterr().out
    assert "\nexport UCX_CMA_BW=1\n" in out and f"# {LABEL}" in out


def run_ranks(results: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    show = "import os; os.write(1, (str(os.environ.get('UCX_CMA_BW')) + '\\n').encode())"
    words = ["run", *options, "--results", str(results), sys.executable, "-c", show]
    drop = ("OMPI_", "SLURM_", "PMI", "WAYWISER_RANK", "WAYWISER_LOCAL", "UCX_")
    kept_variables = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    return subprocess.run(
        [sys.executable, "-c", "from waywiser.cli import main; main()", *words],
        env=kept_variables | environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_each_rank_says_that_its_settings_are_simulated(tmp_path: Path) -> None:
    here = replace(ALL, fingerprint=_core.discover().fingerprint, label=LABEL, settings=(PREDICTED,))
    keep(tmp_path, here)
    done = run_ranks(tmp_path, "-n", "2")
    assert (done.returncode, done.stdout.split()) == (0, ["None", "None"])
    (line,) = done.stderr.splitlines()
    assert "only a simulation of this machine" in line and "--accept-simulated takes its settings" in line
    done = run_ranks(tmp_path, "-n", "2", "--accept-simulated")
    assert (done.returncode, done.stdout.split()) == (0, ["1", "1"])
    lines = sorted(done.stderr.splitlines())
    assert len(lines) == 2, lines
    for rank, said in enumerate(lines):
        assert f"rank {rank} on " in said and said.endswith("1 simulated setting, not measured: UCX_CMA_BW=1")


def test_a_rank_of_somebody_elses_job_says_it_too(tmp_path: Path) -> None:
    keep(tmp_path, replace(ALL, fingerprint=_core.discover().fingerprint, label=LABEL, settings=(PREDICTED,)))
    told = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_ID": "0", "SLURM_LOCALID": "1"}
    told |= {"SLURM_STEP_TASKS_PER_NODE": "4(x2)", "SLURM_STEP_NUM_NODES": "2"}
    done = run_ranks(tmp_path, "--accept-simulated", **told)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "rank 5 on " in done.stderr and "1 simulated setting, not measured" in done.stderr


def test_an_unknown_kind_among_known_ones_is_said_once_a_node(tmp_path: Path) -> None:
    keep(tmp_path, ALL)
    done = run_ranks(tmp_path, "-n", "2")
    (line,) = done.stderr.splitlines()
    assert "nothing is known about this machine" in line and line.endswith("binding only")
    assert run_ranks(tmp_path / "empty").stderr == ""


def test_apply_keeps_a_simulation_only_if_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["apply", "--for", "ucx", "--results", str(tmp_path), "--machine"]
    assert cli.run([*command, "remote-t4", "--write"]) == 0
    fingerprint = next((tmp_path / "settings").glob("*.json")).stem
    settings = kept(tmp_path, fingerprint)
    assert settings and settings.source == "simulated" and not any(one.measured for one in settings.settings)
    assert cli.run([*command, "recorded-4xh200", "--write"]) == 2
    assert "run 'waywiser apply' on it" in capsys.readouterr().err
    assert file_of(tmp_path, fingerprint).exists()
