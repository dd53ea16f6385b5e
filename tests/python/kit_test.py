"""The files for systemd, Prometheus, Grafana and Slurm: they parse, name metrics that exist, and do what they say."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from verb_runs import Run

from waywiser.doctor.checks import CHECKS
from waywiser.doctor.metrics import report_text
from waywiser.doctor.report import examine
from waywiser.kit import kit_files
from waywiser.look.root import Root
from waywiser.monitor.counters import Sample
from waywiser.monitor.exporter import text_of
from waywiser.monitor.watcher import View

ABOUT = {"version": "0", "fingerprint": "abcd1234", "machine": "node"}
# What stands for `waywiser`: notes its arguments, prints ANSWER, ends with CODE.
FAKE = '#!/bin/sh\necho "$*" >>"$NOTES"\nprintf "%s\\n" "$ANSWER"\nexit "${CODE:-0}"\n'
SCRIPTS = ("slurm-health-check", "slurm-prolog", "slurm-task-prolog", "waywiser-doctor-textfile")


@pytest.fixture
def kit(run: Run, tmp_path: Path) -> Path:
    """The written kit; its command is a program that notes what it is told."""
    fake = tmp_path / "bin/waywiser"
    fake.parent.mkdir()
    fake.write_text(FAKE)
    fake.chmod(0o755)
    words = ["--command", str(fake), "--results", str(tmp_path / "results"), "--textfiles", str(tmp_path / "textfiles")]
    code, out, err = run("kit", str(tmp_path / "kit"), *words)
    assert code == 0, err
    assert out.splitlines() == [str(tmp_path / "kit" / file.name) for file in kit_files()]
    return tmp_path / "kit"


def call(script: Path, **given: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{script.parents[1]}/bin:{os.environ['PATH']}", "NOTES": f"{script.parents[1]}/notes"}
    return subprocess.run([script], env=environment | given, capture_output=True, text=True, timeout=60)


def notes(kit: Path) -> list[str]:
    return (kit.parent / "notes").read_text().splitlines()


def names_in(text: str) -> set[str]:
    """Metrics in the format of Prometheus, with the families that have no sample yet."""
    families = dict(re.findall(r"^# TYPE (\w+) (\w+)", text, re.MULTILINE))
    return {
        name if kind != "counter" or name.endswith("_total") else f"{name}_total" for name, kind in families.items()
    }


METRICS = names_in(text_of(View(Sample(), job="7"), ABOUT)) | names_in(report_text(examine(Root(), []), ABOUT, 1.0))


def used(expression: str) -> set[str]:
    return set(re.findall(r"\bwaywiser_\w+", expression))


def expressions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            if key in ("expr", "query") and isinstance(one, str):
                yield one
            yield from expressions(one)
    elif isinstance(value, list):
        for one in value:
            yield from expressions(one)


def test_every_place_is_filled_in(kit: Path) -> None:
    for file in kit.iterdir():
        assert not re.search(r"@[A-Z]+@", file.read_text()), file.name
        assert os.access(file, os.X_OK) == (file.name in SCRIPTS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--command", "way wiser; rm"], "command 'way wiser; rm'"),
        (["--results", "a'b"], "results"),
        (["--checks", "D99"], "--only 'd99'"),
        (["--port", "0"], "port"),
    ],
)
def test_values_that_would_break_a_script(words: list[str], message: str, run: Run, tmp_path: Path) -> None:
    code, _, err = run("kit", str(tmp_path / "kit"), *words)
    assert code == 2 and message in err and not (tmp_path / "kit").exists()


@pytest.mark.parametrize(
    "name",
    ["waywiser-monitor.service", "waywiser-doctor.service", "waywiser-doctor.timer", "waywiser-serve.service"],
)
def test_units(name: str, kit: Path) -> None:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((kit / name).read_text())
    assert parser["Unit"]["Description"]
    if name.endswith(".service"):
        program = parser["Service"]["ExecStart"].split()[0]
        assert Path(program).is_file() and os.access(program, os.X_OK)
        if shutil.which("systemd-analyze"):
            done = subprocess.run(["systemd-analyze", "verify", kit / name], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
    else:
        assert parser["Timer"]["OnUnitActiveSec"] == "1h" and (kit / f"{Path(name).stem}.service").is_file()


def test_the_unit_of_serve_has_options_that_exist(kit: Path, run: Run) -> None:
    words = next(line for line in (kit / "waywiser-serve.service").read_text().splitlines() if "ExecStart" in line)
    options = set(re.findall(r"--[a-z-]+", words))
    _, out, _ = run("serve", "--help")
    assert options == {"--listen", "--key", "--metrics", "--json"} and all(option in out for option in options)


def test_alert_rules(kit: Path) -> None:
    rules = [
        rule
        for group in yaml.safe_load((kit / "prometheus-rules.yml").read_text())["groups"]
        for rule in group["rules"]
    ]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 5
    for rule in rules:
        assert used(rule["expr"]) and used(rule["expr"]) <= METRICS, rule
        assert rule["labels"]["severity"] in ("info", "warning", "critical") and rule["annotations"]["summary"]
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_dashboard(kit: Path) -> None:
    board = json.loads((kit / "grafana-dashboard.json").read_text())
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 5
    asked = [one for one in expressions(board) if "waywiser" in one]
    assert len(asked) > len(panels) and all(used(one) <= METRICS for one in asked)
    places = [panel["gridPos"] for panel in panels]
    for i, a in enumerate(places):
        for b in places[:i]:
            apart = a["x"] >= b["x"] + b["w"] or b["x"] >= a["x"] + a["w"] or a["y"] >= b["y"] + b["h"]
            assert apart or b["y"] >= a["y"] + a["h"], (a, b)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_valid(name: str, kit: Path) -> None:
    shell = (kit / name).read_text().splitlines()[0].removeprefix("#!")
    subprocess.run([shell, "-n", kit / name], check=True, timeout=60)


def test_the_textfile_is_replaced_as_a_whole(kit: Path) -> None:
    folder = kit.parent / "textfiles"
    folder.mkdir()
    assert call(kit / "waywiser-doctor-textfile", ANSWER="waywiser_doctor_status 0", CODE="2").returncode == 0
    assert [file.name for file in folder.iterdir()] == ["waywiser.prom"]
    assert (folder / "waywiser.prom").read_text() == "waywiser_doctor_status 0\n"
    assert notes(kit) == [f"doctor --alone --text --results {kit.parent}/results"]
    (kit.parent / "bin/waywiser").write_text("#!/bin/sh\nexit 3\n")  # says nothing: the old answers stay
    assert call(kit / "waywiser-doctor-textfile").returncode == 3
    assert (folder / "waywiser.prom").read_text() == "waywiser_doctor_status 0\n" and len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(("code", "status"), [("0", 0), ("1", 0), ("2", 1), ("3", 0)])
def test_the_prolog_drains_a_node_with_a_problem(code: str, status: int, kit: Path) -> None:
    logger = kit.parent / "bin/logger"
    logger.write_text('#!/bin/sh\necho "logged $*" >>"$NOTES"\n')
    logger.chmod(0o755)
    assert call(kit / "slurm-prolog", ANSWER="D13 problem", CODE=code, SLURM_JOB_ID="7").returncode == status
    asked, *logged = notes(kit)
    assert asked.startswith("doctor --alone --only D04,D12")
    assert len(logged) == (code != "0") and all("D13 problem" in line and "job 7" in line for line in logged)


@pytest.mark.parametrize(
    ("code", "reason", "told"),
    [
        ("2", "", ["scontrol update nodename=n1 state=drain reason=waywiser: D13 D14"]),
        ("0", "State=IDLE+DRAIN Reason=waywiser: D13", ["scontrol update nodename=n1 state=resume"]),
        ("1", "State=IDLE+DRAIN Reason=disk", []),
        ("0", "State=IDLE", []),
        ("3", "State=IDLE+DRAIN Reason=waywiser: D13", []),
    ],
)
def test_the_health_check(code: str, reason: str, told: list[str], kit: Path) -> None:
    scontrol = kit.parent / "bin/scontrol"
    scontrol.write_text('#!/bin/sh\ncase $1 in -o) echo "$REASON";; *) echo "scontrol $*" >>"$NOTES";; esac\n')
    scontrol.chmod(0o755)
    checks = [("D04", "ok"), ("D13", "problem"), ("D14", "problem")]
    answer = json.dumps({"checks": [{"id": name, "status": status} for name, status in checks]})
    done = call(kit / "slurm-health-check", ANSWER=answer, CODE=code, REASON=reason, SLURMD_NODENAME="n1")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in notes(kit) if line.startswith("scontrol")] == told


def test_the_task_prolog_sets_proved_settings(kit: Path) -> None:
    answer = "#!/bin/bash\n# waywiser: node\necho 'export UCX_TLS=all'"
    done = call(kit / "slurm-task-prolog", ANSWER=answer)
    assert (done.returncode, done.stdout) == (0, "export UCX_TLS=all\n")
    assert notes(kit) == [f"env --proved --results {kit.parent}/results --format slurm"]


def test_the_default_checks_exist() -> None:
    from waywiser.kit import CHECKS as chosen

    assert set(chosen.split(",")) <= {check.id for check in CHECKS}


def test_the_doctor_as_metrics(run: Run) -> None:
    code, out, _ = run("doctor", "--only", "D45,D04", "--text", "--alone")
    assert code in (0, 1, 2)
    assert re.search(
        r'^waywiser_doctor_status\{group="libraries",id="D45",title="OpenSSL\'s .*"\} [0-3]\.0$', out, re.M
    )
    assert 'waywiser_doctor_checks{status="ok"}' in out and "waywiser_build_info{" in out
    assert names_in(out) <= METRICS
    code, _, err = run("doctor", "--text", "--json")
    assert code == 3 and "leave out --json" in err


def test_the_pages_name_metrics_that_exist() -> None:
    page = (Path(__file__).parents[2] / "docs/kit.md").read_text()
    assert used(page) | {name for name in METRICS if name.endswith("_created")} >= METRICS
    assert used(page) <= METRICS
