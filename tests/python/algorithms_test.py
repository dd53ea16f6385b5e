"""Rules for collectives from timed algorithms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import made_up
import pytest
from doctor_machines import build

from waywiser import _core, cli
from waywiser.apply.setting import Setting
from waywiser.prove import benchmarks, collectives
from waywiser.prove.algorithms import TUNING_SIZES, openmpi_algorithms, openmpi_rules
from waywiser.prove.benchmarks import SIZES, Times

ALGORITHMS = {"basic linear": 1, "recursive doubling": 3, "ring": 4}


class Timed:
    """Recursive doubling is twice as fast from 1 KiB to 64 KiB, the ring from 4 MiB; the noise is known."""

    def __init__(self) -> None:
        self._runs = 0

    def __call__(self, variables: Mapping[str, str]) -> Times:
        self._runs += 1
        number = variables.get("OMPI_MCA_coll_tuned_allreduce_algorithm", "")
        doubling, ring = number == "3", number == "4"
        found = {}
        for size in TUNING_SIZES:
            gain = 2.0 if (doubling and 1024 <= size <= 65536) or (ring and size >= 4 << 20) else 1.0
            found["all-reduce", size] = size * 1e-9 / gain * (1 + 0.01 * ((self._runs * 7 + size) % 5))
        return found


def quiet(text: str) -> None:
    pass


def test_rules_of_open_mpi(tmp_path: Path) -> None:
    settings, text = openmpi_rules(ALGORITHMS, Timed(), 2, 6, tmp_path / "rules", quiet)
    assert {one.name: one.value for one in settings} == {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "true",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(tmp_path / "rules"),
    }
    rows = [line.split() for line in text.splitlines() if "algorithm, fan out" in line]
    assert [(int(row[0]), int(row[1])) for row in rows] == [(0, 3), (524288, 0), (4194304, 4)]
    assert "1 KiB: recursive doubling" in settings[0].why


def test_nothing_to_write_when_the_defaults_are_best(tmp_path: Path) -> None:
    assert openmpi_rules({"basic linear": 1}, Timed(), 2, 6, tmp_path / "rules", quiet) == ([], "")
    assert openmpi_rules(ALGORITHMS, Timed(), 2, 2, tmp_path / "rules", quiet) == ([], "")  # too few rounds


def test_algorithms_are_those_of_the_installed_version(tmp_path: Path) -> None:
    told = "".join(
        f"mca:coll:tuned:param:coll_tuned_allreduce_algorithm:enumerator:value:{number}:{name}\n"
        for number, name in ((0, "ignore"), (1, "basic_linear"), (6, "rabenseifner"))
    )
    root = build(tmp_path, {}, {"ompi_info --parsable --all": told})
    assert openmpi_algorithms(root) == {"basic linear": 1, "rabenseifner": 6}


def test_tuned_and_verified_at_different_sizes() -> None:
    assert not set(TUNING_SIZES) & set(SIZES)


def test_the_verb_writes_the_rules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fingerprint = _core.discover().fingerprint
    (tmp_path / "profile.json").write_text(json.dumps(made_up.profile(0) | {"fingerprint": fingerprint}))
    monkeypatch.setattr(benchmarks, "openmpi", lambda *arguments: Timed())
    monkeypatch.setattr(collectives, "openmpi_algorithms", lambda root: ALGORITHMS)
    assert cli.run(["apply", "--collectives", "--for", "openmpi", "--json", "--results", str(tmp_path)]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    file = tmp_path / "settings" / f"{fingerprint}.coll-rules.conf"
    assert str(file) in [one["value"] for one in settings] and "# ranks" in file.read_text()
    assert all(isinstance(Setting(**one), Setting) for one in settings)
    assert cli.run(["apply", "--collectives", "--machine", "recorded-4xh200"]) == 2
