"""D46 reads the version of the libucx wheel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from doctor_machines import build, gpu

from waywiser.doctor.known_defects import ucx_with_gpus
from waywiser.look.finding import Status


@pytest.mark.parametrize(("version", "status"), [("1.21.0", Status.warning), ("1.22.0", Status.ok)])
def test_the_version_of_the_wheel(
    version: str, status: Status, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", ["/opt/lib/python3/site-packages"])
    files = {f"/opt/lib/python3/site-packages/libucx_cu13-{version}.dist-info/METADATA": ""}
    found = ucx_with_gpus(build(tmp_path, gpu() | files))
    assert found.status is status and f"UCX {version} (the libucx wheel)" in found.text
