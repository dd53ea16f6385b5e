"""The verbs `apply` and `env`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import made_up
import pytest
from verb_runs import Run

import waywiser
from waywiser import _core, stages
from waywiser.apply.facts import Machine
from waywiser.apply.propose import settings_for
from waywiser.apply.setting import LeftOut, Setting, Settings
from waywiser.apply.store import all_kept, keep, kept
from waywiser.topology import load_topology
from waywiser.tune.machine_results import simulated

pytestmark = pytest.mark.slow
MACHINES = Path(waywiser.__file__).with_name("machines")


def test_apply_to_this_machine(run: Run, tmp_path: Path) -> None:
    value = made_up.profile(0) | {"fingerprint": _core.discover().fingerprint}
    (tmp_path / "profile.json").write_text(json.dumps(value))
    status, out, err = run("apply", "--results", str(tmp_path), "--json", "--for", "ucx,openmpi")
    assert status == 0 and "settings kept in" in err
    settings = json.loads(out)
    assert set(settings["versions"]) == {"ucx", "openmpi"}
    status, out, _ = run("env", "--results", str(tmp_path))
    assert status == 0 and f"fingerprint {value['fingerprint']}" in out
    for one in settings["settings"]:
        assert f"export {one['name']}=" in out


def test_apply_for_one_library_keeps_what_is_known_about_the_others(run: Run, tmp_path: Path) -> None:
    fingerprint = _core.discover().fingerprint
    (tmp_path / "profile.json").write_text(json.dumps(made_up.profile(0) | {"fingerprint": fingerprint}))
    other = Setting("nccl", "NCCL_MIN_CTAS", "32", "", "measured", "NCCL_MIN_CTAS")
    left = LeftOut("mpich", "MPIR_CVAR_X", "1", "does not win", refuted=True)
    old = Setting("ucx", "UCX_OLD", "1", "", "measured", "UCX_OLD")
    versions = {"nccl": "2.28.3", "ucx": "old"}
    files = {"nccl": "/libnccl.so"}
    keep(tmp_path, Settings(fingerprint, "x", "", versions, (old, other), (left,), libraries=files))
    status, out, _ = run("apply", "--results", str(tmp_path), "--json", "--for", "ucx")
    assert status == 0 and set(json.loads(out)["versions"]) == {"ucx"}
    found = kept(tmp_path, fingerprint)
    assert found and other in found.settings and left in found.left_out and old not in found.settings
    assert found.versions["nccl"] == "2.28.3" and found.versions["ucx"] != "old"
    assert found.libraries["nccl"] == "/libnccl.so"
    assert "NCCL_MIN_CTAS=32" in (tmp_path / "settings" / f"{fingerprint}.nccl.conf").read_text()


def test_predictions_for_one_library_stay_beside_predictions(run: Run, tmp_path: Path) -> None:
    words = ("--from", str(MACHINES / "hse-c.json"), "--results", str(tmp_path), "--write", "--for")
    assert run("apply", *words, "ucx")[0] == 0
    (before,) = all_kept(tmp_path)
    assert run("apply", *words, "nccl")[0] == 0
    (found,) = all_kept(tmp_path)
    assert before.settings and found.settings == before.settings and set(found.versions) == {"ucx", "nccl"}
    measured = Settings(found.fingerprint, found.machine, settings=(Setting("nccl", "NCCL_ALGO", "x", "", "", "x"),))
    assert measured.source != found.source
    keep(tmp_path, measured)
    assert run("apply", *words, "ucx")[0] == 2
    (kept_too,) = all_kept(tmp_path)
    assert kept_too == measured


def test_a_profile_of_another_machine_is_refused(run: Run, tmp_path: Path) -> None:
    made_up.write(tmp_path, 0)
    status, out, err = run("apply", "--results", str(tmp_path))
    assert (status, out) == (2, "") and "not of this machine" in err
    assert run("apply", "--results", str(tmp_path / "empty"))[0] == 2


def test_other_machines_are_shown_and_nothing_is_kept(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("apply", "--from", str(MACHINES / "hse-c.json"), "--results", str(tmp_path))
    assert status == 0 and "NOT A MEASUREMENT" in out and "UCX_CUDA_IPC_BW=47700MBs" in out
    assert "UCX_MAX_RNDV_RAILS=2" in out.partition("left out")[2]
    assert list(tmp_path.iterdir()) == []
    _, out, _ = run("apply", "--machine", "recorded-4xh200", "--for", "ucx")
    assert "NOT A MEASUREMENT" not in out and "UCX_POSIX_BW=10300MBs" in out


def test_apply_simulates_only_what_settings_are_chosen_by(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings are those of all that `tune` simulates."""
    asked: list[dict[str, Any]] = []
    measure = stages.measure

    def noted(topology: Any, options: dict[str, Any], *more: Any) -> str:
        asked.append(options)
        return measure(topology, options, *more)

    monkeypatch.setattr(stages, "measure", noted)
    shown = json.loads(run("apply", "--machine", "remote-t4", "--json")[1])["settings"]
    assert [one["max_bytes"] for one in asked] == [64 << 20] and "loaded" not in asked[0]["operations"]
    whole = Machine(load_topology("remote-t4"), simulated("remote-t4").needed_profile())
    expected = settings_for(whole, unchecked=True).settings
    assert expected and [(one["name"], one["value"]) for one in shown] == [(one.name, one.value) for one in expected]


def test_an_unknown_machine_gets_a_comment(run: Run, tmp_path: Path) -> None:
    keep(tmp_path, Settings("abcd1234", "other", settings=(Setting("ucx", "UCX_TLS", "all", "", "", "x"),)))
    status, out, _ = run("env", "--results", str(tmp_path))
    assert status == 0 and out.startswith("# waywiser: nothing is known about this machine")
    assert "other abcd1234" in out and "export" not in out
    status, out, _ = run("env", "--results", str(tmp_path), "--fingerprint", "abcd1234", "--format", "lmod")
    assert 'setenv("UCX_TLS", "all")' in out


@pytest.mark.parametrize(
    "arguments", [["env", "--format", "x"], ["apply", "--for", "x"], ["env", "--fingerprint", "/"]]
)
def test_bad_arguments(run: Run, arguments: list[str]) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "") and err.count("\n") == 1
