"""Access to the machine: hostile files and commands do no harm, and files without read permission are unknown."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from doctor_machines import GPU0, OPEN, build, gpu, nic
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.doctor.check import Check, looked
from waywiser.doctor.checks import CHECKS
from waywiser.doctor.report import examine
from waywiser.look import nvidia, pci
from waywiser.look.commands import Live
from waywiser.look.finding import Status, Unknown, ok, warning
from waywiser.look.root import Root

NASTY = "\x1b[31mred\x1b]0;title\x07\x00\u202e" + "A" * 100_000 + "\n$(touch pwned)`id`\r%s{}[bold]"


def test_control_characters_and_length_never_get_out(tmp_path: Path) -> None:
    files = dict.fromkeys(("/proc/driver/nvidia/version", "/proc/cpuinfo", "/etc/nccl.conf", "/proc/devices"), NASTY)
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    files |= {
        f"{port}/state": f"4: {NASTY}",
        f"{port}/rate": NASTY,
        "/etc/openmpi/openmpi-mca-params.conf": f"a={NASTY}",
    }
    machine = {**gpu(), **nic(), **files}
    environment = {"UCX_TLS": NASTY, "NCCL_IB_HCA": NASTY, "CUDA_VISIBLE_DEVICES": NASTY, "NCCL_SOCKET_IFNAME": NASTY}
    commands = dict.fromkeys(("nvidia-smi -q", "dmesg", "ucx_info -c", "waywiser-probe cuda", "ibv_devinfo"), NASTY)
    report = examine(build(tmp_path, machine, commands, environment), CHECKS)
    shown = [answer.finding.text for answer in report.answers] + [*report.facts, *report.facts.values()]
    assert all(text.isprintable() and len(text) <= 400 for text in shown)
    assert json.loads(report.to_json())["checks"]
    assert not (tmp_path / "pwned").exists()


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.binary(max_size=300), st.text(max_size=200))
def test_no_content_breaks_a_check(tmp_path_factory: pytest.TempPathFactory, data: bytes, text: str) -> None:
    folder = tmp_path_factory.mktemp("root")
    files = {path: data if isinstance(value, str) else value for path, value in {**gpu(), **nic()}.items()}
    files |= {f"/proc/{name}": data for name in ("cpuinfo", "self/status", "self/limits", "devices", "modules")}
    places = {path: value for path, value in files.items() if not path.endswith(("/vendor", "/class"))}
    root = build(folder, places, {"nvidia-smi -q": text, "dmesg": text})
    for check in CHECKS:
        assert looked(check, root).status in Status


def test_what_may_not_be_read_is_unknown(tmp_path: Path) -> None:
    def refused(root: Root) -> None:
        raise PermissionError(13, "Permission denied", "/x")

    check = Check("D99", "GPU", "x", "x", "x", refused)  # type: ignore[arg-type]
    assert looked(check, build(tmp_path, {})).status is Status.unknown
    root = build(tmp_path, {"/proc/secret": "x"})
    (tmp_path / "proc/secret").chmod(0)
    if os.geteuid():
        with pytest.raises(Unknown, match="needs the right to read /proc/secret"):
            root.text("/proc/secret")


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    root = build(tmp_path / "root", {"/proc/x": "inside"})
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "root/proc/y").symlink_to(tmp_path / "outside")
    with pytest.raises(Unknown, match="leads out"):
        root.text("/proc/y")
    with pytest.raises(Unknown, match="leads out"):
        root.text("/../outside")
    assert root.text("/proc/x") == "inside"


def test_pipes_and_large_files_do_not_stop_it(tmp_path: Path) -> None:
    root = build(tmp_path, {"/big": "x" * (3 << 20), "/number": "9" * 5000})
    os.mkfifo(tmp_path / "pipe")
    assert root.text("/pipe") is None
    assert len(root.text("/big") or "") == 1 << 20
    assert root.number("/number") is not None  # only its head is read
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert root.text("/loop") is None


def test_commands_have_a_deadline_and_no_shell() -> None:
    live = Live(seconds=0.2)
    with pytest.raises(Unknown, match="did not end within"):
        live.run((sys.executable, "-c", "import time; time.sleep(60)"))
    with pytest.raises(Unknown, match="needs the command no-such-command"):
        live.run(("no-such-command", ";", "touch", "x"))
    with pytest.raises(Unknown, match="failed"):
        Live().run((sys.executable, "-c", "import sys; sys.exit(3)"))
    text = Live(environment={"UCX_TLS": "tcp", "KEPT": "yes"}).run(
        (sys.executable, "-c", "import os; print(os.environ.get('UCX_TLS'), os.environ['KEPT'])")
    )
    assert text == "None yes\n"


def test_a_command_runs_once(tmp_path: Path) -> None:
    live, marker = Live(), tmp_path / "count"
    command = (sys.executable, "-c", f"open({str(marker)!r}, 'a').write('x')")
    live.run(command)
    live.run(command)
    assert marker.read_text() == "x"


def test_texts_of_findings_are_clean_lines() -> None:
    assert ok("a\nb\x1b[0m  c").text == "a b [0m c"
    assert len(warning("x" * 1000).text) == 400


def test_capabilities_that_point_in_circles(tmp_path: Path) -> None:
    data = bytearray(4096)
    data[0x34], data[0x41] = 0x40, 0x40
    data[0x100:0x104] = (0x7 | 0x100 << 20).to_bytes(4, "little")
    root = build(tmp_path, gpu(config=bytes(data)))
    assert pci.capability(root, GPU0, 0x10) is None
    assert pci.extended_capability(root, GPU0, 0x0D) is None


def test_nvidia_smi_text_is_read() -> None:
    head, gpus = nvidia.parse_query(
        "====NVSMI LOG====\n\nDriver Version                            : 580.1\n\nGPU 00000000:17:00.0\n"
        "    Product Name                          : H200\n    MIG Mode\n        Current                  : Disabled\n"
        "    FB Memory Usage\n        Total       : 143771 MiB\n"
    )
    assert head["Driver Version"] == "580.1"
    one = gpus["0000:17:00.0"]
    assert nvidia.value(one, "MIG Mode", "Current") == "Disabled"
    assert nvidia.mebibytes(nvidia.value(one, "FB Memory Usage", "Total")) == 143771
    assert nvidia.value(one, "MIG Mode", "Current", "deeper") == "" == nvidia.value(one, "nothing")


def test_this_machine_is_looked_at_without_a_change() -> None:
    report = examine(Root(), CHECKS)
    assert len(report.answers) == len(CHECKS)
    assert report.count(Status.unknown) < 47
    assert OPEN not in report.to_json()
