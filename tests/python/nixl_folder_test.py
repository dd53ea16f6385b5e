"""The folder in which NIXL finds our back end beside its own: `python -m waywiser.nixl_folder`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from quoted import ROOT, cells, read, text

from waywiser import nixl_folder


@pytest.fixture
def nixl(tmp_path: Path) -> Path:
    """As its wheel lies in site-packages."""
    libraries = tmp_path / "site/.nixl_cu13.mesonpy.libs"
    (libraries / "plugins").mkdir(parents=True)
    (tmp_path / "site/nixl_cu13.libs").mkdir()
    for name in ("libnixl.so", "plugins/libplugin_UCX.so", "plugins/libplugin_POSIX.so"):
        (libraries / name).write_text(name)
    return libraries


def command(*words: str | Path, at: Path) -> tuple[int, str, str]:
    found = [sys.executable, "-m", "waywiser.nixl_folder", *map(str, words)]
    done = subprocess.run(found, cwd=at, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_the_lines_lead_to_both_back_ends(nixl: Path, tmp_path: Path) -> None:
    for _ in range(2):  # again, over the old links
        code, told, said = command("my links", "--nixl", nixl, at=tmp_path)
        assert (code, said) == (0, "")
        assert told == f"export NIXL_PLUGIN_DIR='{tmp_path}/my links/.nixl_cu13.mesonpy.libs/plugins'\n"
    plugins = tmp_path / "my links/.nixl_cu13.mesonpy.libs/plugins"
    assert sorted(each.name for each in plugins.iterdir()) == [
        "libplugin_POSIX.so", "libplugin_UCX.so", "libplugin_WAYWISER.so",
    ]  # fmt: skip
    assert (plugins / "libplugin_UCX.so").read_text() == "plugins/libplugin_UCX.so"
    assert (plugins / "libplugin_WAYWISER.so").samefile(nixl_folder.PLUGIN)
    # From where a back end lies, its libraries are where NIXL has them.
    assert (plugins / "../libnixl.so").samefile(nixl / "libnixl.so")
    assert (plugins / "../../nixl_cu13.libs").samefile(nixl / "../nixl_cu13.libs")


def test_the_plan_of_the_results_is_named(nixl: Path, tmp_path: Path) -> None:
    (tmp_path / "waywiser-results").mkdir()
    (tmp_path / "waywiser-results/plan.json").write_text("{}")
    code, told, _ = command("--nixl", nixl, at=tmp_path)
    assert code == 0 and told.splitlines()[1] == f"export WAYWISER_PLAN={tmp_path}/waywiser-results/plan.json"


def test_what_is_missing_or_in_the_way_is_one_line(nixl: Path, tmp_path: Path) -> None:
    for words, why in (
        (("links", "--nixl", tmp_path), f"{tmp_path} has no folder `plugins` of NIXL"),
        (("links",), f"no NIXL with back ends is installed for {sys.executable}: pip install nixl, or name its folder"),
    ):
        assert command(*words, at=tmp_path) == (2, "", f"waywiser: {why}\n")
    plugins = tmp_path / "links/.nixl_cu13.mesonpy.libs/plugins"
    plugins.mkdir(parents=True)
    (plugins / "libplugin_UCX.so").write_text("of somebody else")
    code, told, said = command("links", "--nixl", nixl, at=tmp_path)
    assert (code, told) == (2, "") and said.endswith("libplugin_UCX.so is in the way: name a new folder\n")
    assert (plugins / "libplugin_UCX.so").read_text() == "of somebody else"


def test_the_table_of_the_page_is_that_of_the_file() -> None:
    page = (ROOT / "docs/howto-nixl.md").read_text(encoding="utf-8")
    for row in read("nixl-host.json")["rows"]:
        expected = [row["case"], *(text(row[name]) for name in ("us", "ucx_us", "ratio"))]
        assert expected in [cells(line) for line in page.splitlines()], expected
