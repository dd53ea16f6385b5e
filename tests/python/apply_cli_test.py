"""The verbs `apply` and `env`."""

from __future__ import annotations

import json
from pathlib import Path

import made_up
import pytest
from verb_runs import Run

import waywiser
from waywiser import _core
from waywiser.apply.setting import Setting, Settings
from waywiser.apply.store import keep

MACHINES = Path(waywiser.__file__).with_name("machines")


def test_apply_to_this_machine(run: Run, tmp_path: Path) -> None:
    value = made_up.profile(0) | {"fingerprint": _core.discover().fingerprint}
    (tmp_path / "profile.json").write_text(json.dumps(value))
    status, out, err = run("apply", "--output", str(tmp_path), "--json", "--for", "ucx,openmpi")
    assert status == 0 and "settings kept in" in err
    settings = json.loads(out)
    assert set(settings["versions"]) == {"ucx", "openmpi"}
    status, out, _ = run("env", "--output", str(tmp_path))
    assert status == 0 and f"fingerprint {value['fingerprint']}" in out
    for one in settings["settings"]:
        assert f"export {one['name']}=" in out


def test_a_profile_of_another_machine_is_refused(run: Run, tmp_path: Path) -> None:
    made_up.write(tmp_path, 0)
    status, out, err = run("apply", "--output", str(tmp_path))
    assert (status, out) == (2, "") and "not of this machine" in err
    assert run("apply", "--output", str(tmp_path / "empty"))[0] == 2


def test_other_machines_are_shown_and_nothing_is_kept(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("apply", "--from", str(MACHINES / "hse-c.json"), "--output", str(tmp_path))
    assert status == 0 and "NOT A MEASUREMENT" in out and "UCX_MAX_RNDV_RAILS=1" in out
    assert list(tmp_path.iterdir()) == []
    _, out, _ = run("apply", "--machine", "recorded-4xh200", "--for", "ucx")
    assert "NOT A MEASUREMENT" not in out and "UCX_POSIX_BW=10818MBs" in out


def test_an_unknown_machine_gets_a_comment(run: Run, tmp_path: Path) -> None:
    keep(tmp_path, Settings("abcd1234", "other", settings=(Setting("ucx", "UCX_TLS", "all", "", "", "x"),)))
    status, out, _ = run("env", "--output", str(tmp_path))
    assert status == 0 and out.startswith("# waywiser: nothing is known about this machine")
    assert "other abcd1234" in out and "export" not in out
    status, out, _ = run("env", "--output", str(tmp_path), "--fingerprint", "abcd1234", "--format", "lmod")
    assert 'setenv("UCX_TLS", "all")' in out


@pytest.mark.parametrize(
    "arguments", [["env", "--format", "x"], ["apply", "--for", "x"], ["env", "--fingerprint", "/"]]
)
def test_bad_arguments(run: Run, arguments: list[str]) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "") and err.count("\n") == 1
