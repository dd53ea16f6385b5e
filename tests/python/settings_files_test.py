"""Settings as they are written for a shell, a batch system and libraries, read back, and kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from waywiser.apply.render import render
from waywiser.apply.setting import Setting, Settings, read_settings
from waywiser.apply.store import all_kept, keep, kept
from waywiser.errors import InputError

SETTINGS = Settings(
    "abcd1234",
    "node",
    settings=(
        Setting("ucx", "UCX_TLS", "^cma", "all", "posix is faster", "UCX_TLS"),
        Setting("openmpi", "OMPI_MCA_pml", 'u"c\\x $(id)', "ob1", "measured", "pml ucx"),
    ),
)


def test_settings_are_read_back() -> None:
    assert read_settings(json.loads(SETTINGS.to_json()), "x") == SETTINGS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "PATH; rm -rf /"}, "must be a variable of UCX"),
        ({"name": "LD_PRELOAD"}, "must be a variable of UCX"),
        ({"target": "bash"}, "must be one of ucx"),
        ({"value": 3}, "must be a string"),
    ],
)
def test_settings_from_outside_are_checked(change: dict[str, Any], words: str) -> None:
    value = json.loads(SETTINGS.to_json())
    value["settings"][0] |= change
    with pytest.raises(InputError, match=words):
        read_settings(value, "settings.json")


def test_a_shell_reads_what_is_printed(tmp_path: Path) -> None:
    import subprocess

    text = render(SETTINGS, "shell", ("ucx", "openmpi"))
    done = subprocess.run(["sh", "-c", text + 'printf %s "$OMPI_MCA_pml"'], capture_output=True, text=True, timeout=20)
    assert done.stdout == 'u"c\\x $(id)'
    prolog = render(SETTINGS, "slurm", ("ucx", "openmpi"))
    done = subprocess.run(["bash", "-c", prolog], capture_output=True, text=True, timeout=20)
    assert done.stdout.splitlines() == ["export UCX_TLS=^cma", 'export OMPI_MCA_pml=u"c\\x $(id)']


def test_own_files_and_module() -> None:
    assert 'setenv("OMPI_MCA_pml", "u\\"c\\\\x $(id)")' in render(SETTINGS, "lmod", ("openmpi",))
    assert "\nUCX_TLS=^cma\n" in render(SETTINGS, "ucx.conf", ("ucx", "openmpi"))
    named = render(replace(SETTINGS, product="PowerEdge XE8545"), "ucx.conf", ("ucx",))
    assert "\n[waywiser abcd1234]\nProduct name=PowerEdge XE8545\n" in named
    assert "OMPI_MCA" not in render(SETTINGS, "mca-params.conf", ("openmpi",)).split("\n", 3)[3]
    assert "the defaults are best here" in render(Settings("abcd", "n"), "shell", ("ucx",))


def test_the_store_is_keyed_by_fingerprint(tmp_path: Path) -> None:
    keep(tmp_path, SETTINGS)
    assert kept(tmp_path, "abcd1234") == SETTINGS and all_kept(tmp_path) == [SETTINGS]
    assert kept(tmp_path, "ffff0000") is None
    with pytest.raises(InputError, match="is no fingerprint"):
        kept(tmp_path, "../../etc/passwd")
    (tmp_path / "settings/ffff0000.json").write_text(SETTINGS.to_json())
    with pytest.raises(InputError, match="is for abcd1234"):
        kept(tmp_path, "ffff0000")
