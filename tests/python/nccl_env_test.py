"""The plug-in that serves the settings of this node to NCCL: both versions of its interface, without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from made_up_nccl import ENVIRONMENT, PATIENCE

from waywiser import _core

# NCCL's part, in a process of its own, which prints what NCCL would get.
ASK = """
import ctypes, os, sys
class Plugin(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p)] + [(name, ctypes.c_void_p) for name in ("init", "finalize", "get")]
library, version = ctypes.CDLL(sys.argv[1]), int(sys.argv[2])
plugin = Plugin.in_dll(library, f"ncclEnvPlugin_v{version}")
byte, text = ctypes.c_uint8, ctypes.c_char_p
more = [ctypes.c_void_p] if version == 2 else []
init = ctypes.CFUNCTYPE(ctypes.c_int, byte, byte, byte, text, *more)(plugin.init)
get = ctypes.CFUNCTYPE(text, text)(plugin.get)
print(plugin.name.decode(), init(2, 29, 0, b"", *[None] * len(more)))
for name in sys.argv[3:]:
    found = get(name.encode())
    print("nothing" if found is None else found.decode())
libc = ctypes.CDLL(None)
libc.getenv.restype = text
print((libc.getenv(b"WAYWISER_NCCL_PLAN") or b"no plan").decode())
print(ctypes.CFUNCTYPE(ctypes.c_int)(plugin.finalize)())
"""
NAMES = ("NCCL_P2P_LEVEL", "NCCL_IB_HCA", "NCCL_DEBUG")


def ask(version: int, variables: Mapping[str, str]) -> tuple[list[str], list[str]]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "WAYWISER_NCCL"))}
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(ENVIRONMENT), str(version), *NAMES], env=clean | dict(variables),
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    return done.stdout.splitlines(), done.stderr.splitlines()


@pytest.mark.parametrize("version", [1, 2])
def test_settings_of_this_node_are_served_and_the_users_win(tmp_path: Path, version: int) -> None:
    file = tmp_path / f"{_core.discover().fingerprint}.nccl.conf"
    file.write_text("# why\n\nNCCL_P2P_LEVEL=SYS\nNCCL_IB_HCA==mlx5_0,mlx5_1\nWAYWISER_NCCL_PLAN=ab:/plan.json\n")
    variables = {"WAYWISER_NCCL_SETTINGS": str(tmp_path)}
    assert ask(version, variables) == (
        ["waywiser 0", "SYS", "=mlx5_0,mlx5_1", "nothing", "ab:/plan.json", "0"], []
    )  # fmt: skip
    mine = variables | {"NCCL_P2P_LEVEL": "PIX", "NCCL_DEBUG": "WARN", "WAYWISER_NCCL_PLAN": "cd:/mine.json"}
    assert ask(version, mine)[0] == ["waywiser 0", "PIX", "=mlx5_0,mlx5_1", "WARN", "cd:/mine.json", "0"]


def test_without_settings_the_job_is_as_it_was(tmp_path: Path) -> None:
    nothing = ["waywiser 0", "nothing", "nothing", "nothing", "no plan", "0"]
    answer, said = ask(2, {})
    assert answer == nothing
    assert said == ["waywiser: NCCL: no settings: WAYWISER_NCCL_SETTINGS names no folder of settings"]
    answer, said = ask(2, {"WAYWISER_NCCL_SETTINGS": str(tmp_path)})
    assert answer == nothing and said[0].endswith(".nccl.conf: cannot be read")
    file = tmp_path / f"{_core.discover().fingerprint}.nccl.conf"
    for wrong, why in (("nonsense\n", "a line is not NAME=VALUE"), ("NCCL_A=b\n" * 1001, "is too long")):
        file.write_text(wrong)
        answer, said = ask(1, {"WAYWISER_NCCL_SETTINGS": str(tmp_path)})
        assert answer == nothing and len(said) == 1 and why in said[0]
