"""Fixtures of many tests. Programs that tests start obey signals, and write whole lines, whatever started the tests."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import node_profiles
import pytest
from verb_runs import Run

from waywiser import cli

# A shell makes background programs ignore Ctrl-C, nohup the end of the session, and their children inherit this.
for number, usual in {
    signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL
}.items():  # fmt: skip
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)
# With it, print() writes each word apart, and the lines of ranks that share a pipe are torn.
os.environ.pop("PYTHONUNBUFFERED", None)

# Files of slow tests that take a minute or more. Workers take a whole file at a time: one that begins last ends alone.
LONG_FILES = (
    "library_variables_test", "node_settings_test", "one_story_test", "every_machine_test", "consumers_test",
    "nvshmem_test", "tune_network_test", "slurm_ranks_test", "apps_test", "remote_copy_test",
)  # fmt: skip


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where only slow or only long tests run, each worker imports the files that have some: the others take seconds.
    A mark stands in the file of its tests, therefore."""
    first, *_ = str(config.getoption("markexpr")).split() or [""]
    if collection_path.suffix != ".py" or first not in ("slow", "long"):
        return None
    return True if f"mark.{first}" not in collection_path.read_text() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, then those with most tests."""
    tests = Counter(item.path for item in items)
    place = {name: number for number, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: (place.get(item.path.stem, len(place)), -tests[item.path], item.path))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        status = cli.run(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture(scope="session", autouse=True)
def profiles_of_nodes(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where the workers of this run share them."""
    own = tmp_path_factory.getbasetemp()
    node_profiles.folder[:] = [own.parent if "PYTEST_XDIST_WORKER" in os.environ else own]
