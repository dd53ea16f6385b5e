"""`waywiser doctor`: exit codes, JSON, selection, several nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from doctor_machines import OPEN, PROPRIETARY, build, gpu, nic
from verb_runs import Run

from waywiser.doctor import libraries
from waywiser.doctor.compare import code, compare, node_names, worst_first
from waywiser.doctor.gather import gather_reports
from waywiser.doctor.report import SCHEMA, Report, examine, read_report, selected
from waywiser.doctor.table import print_comparison
from waywiser.errors import InputError
from waywiser.look import installed_libraries
from waywiser.look.finding import Status
from waywiser.look.job import Job
from waywiser.look.root import Root


@pytest.fixture
def doctor(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK", "RANK"):
        monkeypatch.delenv(name, raising=False)
    return partial(run, "doctor")


def machine(folder: Path, version: str = OPEN, **environment: str) -> Path:
    build(folder, gpu() | {"/proc/driver/nvidia/version": version, "/proc/sys/kernel/hostname": folder.name})
    head = {"schema": "waywiser.root", "version": 1, "environment": environment, "commands": {"dmesg": None}}
    (folder / "waywiser-root.json").write_text(json.dumps(head))
    return folder


@pytest.mark.parametrize(
    ("only", "files", "status"),
    [
        ("D04", {"/proc/driver/nvidia/version": OPEN}, 0),
        ("D04", {"/proc/driver/nvidia/version": PROPRIETARY, **nic()}, 1),
        ("D04", {}, 2),
        ("D05", {}, 3),
    ],
)
def test_exit_codes_of_monitoring_tools(
    doctor: Run, tmp_path: Path, only: str, files: dict[str, str], status: int
) -> None:
    build(tmp_path, gpu() | files)
    assert doctor("--root", str(tmp_path), "--only", only)[0] == status


@pytest.mark.parametrize(
    "arguments", [["--only", "D99"], ["--nonsense"], ["x.json"], ["--compare", "x.json"], ["--root", "/nowhere"]]
)
def test_bad_usage_is_3_because_2_is_taken(doctor: Run, arguments: list[str]) -> None:
    status, out, err = doctor(*arguments)
    assert (status, out) == (3, "")
    assert err.count("\n") == 1 and err.startswith("waywiser: ")


def test_unknown_counts_when_strict(doctor: Run, tmp_path: Path) -> None:
    folder = str(machine(tmp_path / "n1"))
    assert doctor("--root", folder, "--only", "D04,D05")[0] == 0
    assert doctor("--root", folder, "--only", "D04,D05", "--strict")[0] == 3


def test_json_is_read_back(doctor: Run, tmp_path: Path) -> None:
    status, out, _ = doctor("--root", str(machine(tmp_path / "n1")), "--json", "--only", "gpu")
    value = json.loads(out)
    assert value["schema"] == SCHEMA
    report = read_report(value, "x")
    assert report.host == "n1" and report.code() == status
    assert json.loads(report.to_json()) == value
    value["checks"][0]["status"] = "fine"
    with pytest.raises(InputError, match="must be one of ok"):
        read_report(value, "x.json")


def test_table_names_remedies_and_what_is_left_out(doctor: Run, tmp_path: Path) -> None:
    folder = tmp_path / "n1"
    build(folder, gpu() | nic() | {"/proc/driver/nvidia/version": PROPRIETARY})
    _, out, _ = doctor("--root", str(folder), "--only", "GPU,NIC")
    assert "remedy: install the open kernel modules" in out
    assert "--all shows everything" in " ".join(out.split()) and "looked at" not in out
    _, out, _ = doctor("--root", str(folder), "--all")
    assert "looked at: /proc/driver/nvidia/version" in out and "D31" in out


def _with_two_copies(folder: Path) -> Path:
    return Path(build(folder, {f"{where}/libucp.so.0": "" for where in ("/usr/lib64", "/opt/hpcx/ucx/lib")}).folder)


def test_a_known_finding_is_shown_and_does_not_count(doctor: Run, tmp_path: Path) -> None:
    root, known = ("--root", str(_with_two_copies(tmp_path / "n1"))), tmp_path / "accepted"
    assert doctor(*root, "--only", "D33")[0] == 1
    status, out, _ = doctor(*root, "--only", "D33", "--ignore", "D33")
    assert status == 0 and "accepted one copy of each library" in out and "0 warnings" in out and "1 accepted" in out
    assert "remedy" not in out
    known.write_text("# as delivered by the vendor\nD33: /opt/hpcx   # both are the same version\n\n")
    assert doctor(*root, "--only", "D33", "--accepted", str(known))[0] == 0
    known.write_text("D33: /opt/other\n")
    assert doctor(*root, "--only", "D33", "--accepted", str(known))[0] == 1
    _, out, _ = doctor(*root, "--only", "D33", "--ignore", "libraries", "--json")
    row = json.loads(out)["checks"][0]
    assert (row["status"], row["accepted"]) == ("warning", True)
    assert read_report(json.loads(out), "x").code() == 0


@pytest.mark.parametrize("line", ["33: x", "D99", "D33 without a colon"])
def test_a_bad_line_of_accepted_findings_is_named(doctor: Run, tmp_path: Path, line: str) -> None:
    file = tmp_path / "accepted"
    file.write_text(f"D33\n{line}\n")
    status, out, err = doctor("--accepted", str(file))
    assert (status, out) == (3, "") and f"{file}, line 2: write a check" in err and err.count("\n") == 1


def test_bad_words_to_ignore_name_the_option(doctor: Run) -> None:
    assert "--ignore 'd99'" in doctor("--ignore", "D99")[2]


def test_wheels_of_this_python_are_no_second_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "site-packages"
    (wheel / "libucx/lib").mkdir(parents=True)
    for name in ("libucp.so", "libucp.so.0"):
        (wheel / "libucx/lib" / name).touch()
    root = build(tmp_path / "n1", {})
    monkeypatch.setattr(sys, "path", [str(wheel)])
    monkeypatch.setattr(installed_libraries, "FOLDERS", (str(tmp_path / "system"),))
    monkeypatch.setattr(libraries, "mapped", lambda root, library: [])
    (tmp_path / "system").mkdir()
    here = Root("/", {}, root.commands)
    assert libraries.copies(here).status is Status.ok
    (tmp_path / "system/libucp.so.0").touch()
    found = libraries.copies(here)
    assert found.status is Status.ok and found.text.split("; ")[0] == str(tmp_path / "system/libucp.so.0")


def test_ranks_of_one_node_are_not_called_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    two = reports("580", "580")
    print_comparison(two, [])
    assert "2 nodes, no difference" in capsys.readouterr().out
    print_comparison([Report("n", rank, (), two[0].facts) for rank in (0, 1)], [])
    assert "2 ranks of 1 node, no difference" in capsys.readouterr().out


def test_selection_by_id_and_group() -> None:
    assert [check.id for check in selected("d09, D10")] == ["D09", "D10"]
    assert {check.group for check in selected("nic")} == {"NIC"}
    assert len(selected("")) == 58


def reports(*versions: str, **changed: str) -> list[Report]:
    found = []
    for rank, version in enumerate(versions):
        facts = {"driver": version, "kernel": "6.1", "boot": f"b{rank}", "namespaces": f"n{rank}", "$UCX_TLS": "all"}
        found.append(Report(f"node{rank}", rank, (), facts | changed))
    return found


def test_the_odd_node_is_named() -> None:
    nodes = reports("580", "580", "535", "580")
    (found,) = compare(nodes)
    assert (found.what, found.usual, found.odd) == ("driver", "580", (("node2", "535"),))
    assert code(nodes, [found]) == 1 and code(nodes, []) == 0


def test_without_a_majority_all_are_named() -> None:
    (found,) = compare(reports("580", "535"))
    assert found.usual is None and found.odd == (("node0", "580"), ("node1", "535"))


def test_a_variable_that_one_rank_lacks() -> None:
    nodes = reports("580", "580", "580")
    del nodes[1].facts["$UCX_TLS"]
    (found,) = compare(nodes)
    assert (found.what, found.odd) == ("$UCX_TLS", (("node1", "not set"),))


def test_namespaces_matter_only_on_one_machine() -> None:
    assert compare(reports("580", "580")) == []
    nodes = reports("580", "580", "580", boot="the same")
    found = compare(nodes)
    assert [one.what for one in found] == ["D18 namespaces of ranks on one machine"]
    assert compare(reports("580", "580", boot="the same", namespaces="one")) == []


def test_ranks_of_one_host_are_told_apart() -> None:
    nodes = [Report("a", 0, (), {}), Report("a", 1, (), {}), Report("b", 2, (), {})]
    assert node_names(nodes) == ["a rank 0", "a rank 1", "b"]


def test_compare_files(doctor: Run, tmp_path: Path) -> None:
    files = []
    for name, version in (("n1", OPEN), ("n2", OPEN), ("n3", PROPRIETARY)):
        _, out, _ = doctor("--root", str(machine(tmp_path / name, version)), "--json", "--only", "D04")
        files.append(str(tmp_path / f"{name}.json"))
        Path(files[-1]).write_text(out)
    status, out, _ = doctor("--compare", *files)
    assert status == 1
    assert "driver flavour" in out and "n3" in out and "not open" in out
    status, out, _ = doctor("--compare", "--json", *files)
    found = json.loads(out)
    assert found["nodes"] == ["n1", "n2", "n3"]
    assert {"what": "driver", "usual": "580.95.05", "odd": {"n3": "535.104.05"}} in found["differences"]


def test_problems_of_a_node_come_first(tmp_path: Path) -> None:
    report = examine(build(tmp_path, gpu() | nic(state="1: DOWN")), selected("D04,D23,D06"))
    assert worst_first(report) == ["D04", "D23", "D06"]


def test_gather_names_the_missing_ranks(tmp_path: Path) -> None:
    mine = reports("580")[0]
    assert gather_reports(mine, Job(2, 4, "x"), tmp_path, 1) is None
    with pytest.raises(InputError, match=r"no report of rank 1, 3 .*--gather DIR.*; PMI_SIZE=4 says"):
        gather_reports(mine, Job(0, 4, "x", "PMI_SIZE=4 says"), tmp_path, 0)
    for rank in (1, 3):
        gather_reports(mine, Job(rank, 4, "x"), tmp_path, 1)
    found = gather_reports(mine, Job(0, 4, "x"), tmp_path, 1)
    assert found and len(found) == 4 and list(tmp_path.iterdir()) == []


def test_a_job_on_machines_that_cannot_meet_is_gathered_through_this_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    task = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "2"}
    for name, value in task.items():
        monkeypatch.setenv(name, value)
    mine = reports("580")[0]
    gather_reports(mine, Job(1, 2, "x"), None, 1)
    assert len(gather_reports(mine, Job(0, 2, "x"), None, 1) or []) == 2
    assert "set WAYWISER_ROOT" in capsys.readouterr().err


def test_a_job_is_gathered_at_rank_0(tmp_path: Path) -> None:
    """Three processes as a launcher starts them on one machine: they need no folder."""
    script = "from waywiser.cli import main; main()"
    processes = []
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "here").mkdir()
    for rank in range(3):
        told = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "3", "PMIX_NAMESPACE": "t"}
        told["NCCL_IB_HCA"] = "mlx5_9" if rank == 1 else "mlx5_0"
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", script, "doctor", "--only", "D20", "--timeout", "60"],
                cwd=tmp_path / "here",
                env={**os.environ, **told, "WAYWISER_RUNTIME_DIR": str(tmp_path / "run")},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    outputs = [process.communicate(timeout=90)[0] for process in processes]
    assert outputs[1:] == ["", ""]
    assert "$NCCL_IB_HCA" in outputs[0] and "mlx5_9 (environment)" in outputs[0]
    assert processes[0].returncode in (1, 2)
    assert list((tmp_path / "here").iterdir()) == []
