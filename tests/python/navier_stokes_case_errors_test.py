"""apps/navier_stokes: case files that are wrong end with one line that names the place, and exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rank_jobs import ROOT

pytest.importorskip("meshio")
from flow_meshes import channel, write_case, write_mesh

from waywiser.mesh import Mesh

sys.path.insert(0, str(ROOT / "apps/navier_stokes"))
from case_file import read_case
from case_mesh import case_mesh
from case_writer import prepare
from profiles import profile
from yaml_table import CaseError

GOOD = """low: {kind: wall}
high: {kind: wall}
left: {kind: inlet, velocity_m_per_s: 1}
right: {kind: outlet}
"""


def refused(case: Path, why: str) -> None:
    with pytest.raises(CaseError) as raised:
        case_mesh(read_case(case))
    assert why in str(raised.value) and "\n" not in str(raised.value), raised.value


@pytest.fixture
def mesh(tmp_path: Path) -> str:
    write_mesh(channel((4, 4), (2, 1)), tmp_path / "channel.msh")
    return "channel.msh"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("wall}\nhigh", "wal}\nhigh", "line 4: kind: 'wal': write one of inlet, wall, moving_wall"),
        ("low: {kind", "floor: {kind", "line 4: boundary 'floor': "),
        ("low: {kind: wall}", "", "no condition for the boundaries low of "),
        ("velocity_m_per_s: 1", "speed: 1", "line 6: boundary 'left': needs either velocity_m_per_s or mass_flow"),
        ("velocity_m_per_s: 1", "velocity_m_per_s: 1, angle: 3", "line 6: unknown key 'angle': left has kind, "),
        ("velocity_m_per_s: 1", "velocity_m_per_s: fast", "line 6: velocity_m_per_s is a number"),
        ("velocity_m_per_s: 1", "velocity_m_per_s: -1", "velocity_m_per_s: -1: a number more than 0"),
        ("velocity_m_per_s: 1", "velocity_m_per_s: .nan", "velocity_m_per_s is"),
        ("velocity_m_per_s: 1", "velocity_m_per_s: [1, 0, 1]", "a velocity leaves the plane of "),
        ("right: {kind: outlet}", "right: {kind: outlet, scalar: 3}", "boundary 'right': has a scalar, and the case"),
        ("right: {kind: outlet}", "right: {kind: wall}", "without an outlet as much must leave as enters, not 1 m3/s"),
        ("low: {kind: wall}", "low: {kind: periodic, with: high}", "its partner 'high' is no periodic boundary"),
        ("low: {kind: wall}", "low: {kind: moving_wall, velocity_m_per_s: [0, 1]}", "would move through the fluid"),
        ("low: {kind: wall}", "low: {kind: moving_wall}", "needs either velocity_m_per_s or rotation_rad_per_s"),
        ("low: {kind: wall}", "low: wall", "line 4: low is a table of keys and values"),
        ("low: {kind: wall}", "low: {kind: wall}\nlow: {kind: wall}", "line 5: low is there twice"),
    ],
)
def test_a_boundary_that_is_wrong_is_named(old: str, new: str, why: str, mesh: str, tmp_path: Path) -> None:
    assert old in GOOD
    refused(write_case(tmp_path / "bad.yaml", mesh, GOOD.replace(old, new)), why)


@pytest.mark.parametrize(
    ("more", "time", "why"),
    [
        ("fluids: 3\n", "end_s: 1\n  courant: 0.5", "unknown key 'fluids': a case has "),
        ("fluid: {density_kg_per_m3: 1}\n", "end_s: 1\n  courant: 0.5", "either viscosity_pa_s or viscosity_m2_per_s"),
        ("fluid: {viscosity_pa_s: 1}\n", "end_s: 1\n  courant: 0.5", "fluid needs density_kg_per_m3"),
        ("scale: 0\n", "end_s: 1\n  courant: 0.5", "scale: 0: a number more than 0"),
        ("name: a/b\n", "end_s: 1\n  courant: 0.5", "name: letters, digits"),
        ("les: {model: rans}\n", "end_s: 1\n  courant: 0.5", "model: 'rans': write one of smagorinsky, wale"),
        ("scalar: {name: pressure}\n", "end_s: 1\n  courant: 0.5", "name: letters, digits and _ only, and none of vel"),
        ("", "end_s: 1", "time needs courant, step_s, or both"),
        ("", "courant: 1", "time needs end_s"),
        ("output: {frame: 2}\n", "end_s: 1\n  courant: 0.5", "unknown key 'frame': output has frames, "),
        ("solver: [1]\n", "end_s: 1\n  courant: 0.5", "solver is a table of keys and values"),
        ("a: [\n", "end_s: 1\n  courant: 0.5", "not YAML: "),
    ],
)
def test_a_case_that_is_wrong_names_its_line(more: str, time: str, why: str, mesh: str, tmp_path: Path) -> None:
    refused(write_case(tmp_path / "bad.yaml", mesh, GOOD, more, time), why)


def test_a_mesh_that_is_wrong_is_named(tmp_path: Path) -> None:
    good = channel((4, 4), (2, 1))
    points = good.points.copy()
    points[12] = (1.9, 0.6)  # past the next corners
    write_mesh(Mesh(points, good.blocks, good.boundaries), tmp_path / "folded.msh")
    refused(write_case(tmp_path / "a.yaml", "folded.msh", GOOD), "cells that fold over their neighbours: ")
    refused(write_case(tmp_path / "b.yaml", "none.msh", GOOD), "none.msh: there is no such file")
    some = {name: faces for name, faces in good.boundaries.items() if name != "right"}
    write_mesh(Mesh(good.points, good.blocks, some), tmp_path / "open.msh")
    without = GOOD.replace("right: {kind: outlet}\n", "")
    why = "4 faces of " + str(tmp_path / "open.msh") + " have no name and no condition, for example of cell "
    refused(write_case(tmp_path / "c.yaml", "open.msh", without), why)
    case_mesh(read_case(write_case(tmp_path / "d.yaml", "open.msh", without + "unnamed: {kind: outlet}")))
    write_mesh(channel((4, 2), (2, 1)), tmp_path / "narrow.msh")
    sides = (
        "left: {kind: wall}\nright: {kind: wall}\nlow: {kind: periodic, with: high}\nhigh: {kind: periodic, with: low}"
    )
    refused(write_case(tmp_path / "e.yaml", "narrow.msh", sides), "needs three cells and equal faces between periodic")


def test_a_flow_that_only_a_force_drives_needs_a_speed(tmp_path: Path) -> None:
    write_mesh(channel((4, 4), (2, 1)), tmp_path / "channel.msh")
    sides = "left: {kind: periodic, with: right}\nright: {kind: periodic, with: left}\n"
    sides += "low: {kind: wall}\nhigh: {kind: wall}"
    case = write_case(tmp_path / "force.yaml", "channel.msh", sides, "body_force_m_per_s2: [1, 0]\n")
    with pytest.raises(CaseError, match="reference needs velocity_m_per_s: only a force drives this flow, if any"):
        prepare(read_case(case), tmp_path)
    assert not list(tmp_path.glob("*.flow"))


def test_the_driver_ends_with_2_and_one_line(mesh: str, tmp_path: Path) -> None:
    case = write_case(tmp_path / "bad.yaml", mesh, GOOD.replace("wall", "wal"))
    words = [sys.executable, str(ROOT / "apps/navier_stokes/run.py")]
    done = subprocess.run(
        [*words, "case", str(case), "--output", str(tmp_path / "out")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "kind: 'wal'" in done.stderr
    done = subprocess.run([*words, "check", str(tmp_path / mesh)], capture_output=True, text=True, check=False)
    assert (
        done.returncode == 0 and "faces of boundaries: left 4, right 4, low 4, high 4; without a name 0" in done.stdout
    )
    done = subprocess.run([*words, "check", "none.msh"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "run.py: none.msh: there is no such file\n")


def test_profiles_have_the_flow_that_is_asked_for() -> None:
    """On a square cut out of a round inlet's rings: the mean velocity is exact, the shape is the formula's."""
    from case_file import Boundary

    ring = (np.arange(20) + 0.5) / 20
    center = np.array([(0, r * np.cos(a), r * np.sin(a)) for r in ring for a in np.arange(16) * np.pi / 8])
    sizes = np.repeat(np.pi * (np.arange(1, 21) ** 2 - np.arange(20) ** 2) / 400 / 16, 16)
    area = -sizes[:, None] * np.array([1, 0, 0])
    points = np.repeat(np.array([[[0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1.0]]]), len(center), axis=0)

    def refuse(why: str) -> None:
        raise CaseError(why)

    for name, at_center, exponent in [("uniform", 1, 7.0), ("parabola", 2, 7.0), ("power_law", 1 / 0.8167, 7.0)]:
        boundary = Boundary("inlet", refuse, velocity=3.0, profile=name, exponent=exponent)
        velocity = profile(boundary, center, area, points, 2.0, False)
        assert (velocity[:, 0] * sizes).sum() == pytest.approx(3 * np.pi)
        assert velocity[0, 0] == pytest.approx(3 * at_center, rel=0.02)
    turning = profile(Boundary("inlet", refuse, mass_flow=4.0, swirl=5), center, area, points, 2.0, False)
    assert (turning[:, 0] * sizes).sum() == pytest.approx(2)
    assert np.cross(center, turning)[:, 0] == pytest.approx(5 * (center**2).sum(axis=1))
    with pytest.raises(CaseError, match="needs an inlet that is round"):
        profile(Boundary("inlet", refuse, velocity=3.0, profile="parabola"), center, 2 * area, points, 2.0, False)
