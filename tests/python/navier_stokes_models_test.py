"""apps/navier_stokes: eddies of large-eddy simulations and a scalar, beside what formulas say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import navier_stokes_runs as runs
import numpy as np
import pytest
from rank_jobs import ROOT, runtime_folder

pytest.importorskip("meshio")
from flow_cases import ring, solve
from flow_meshes import channel, write_case, write_mesh

sys.path.insert(0, str(ROOT / "apps/navier_stokes"))
from ducts import write
from measures import orders
from vtu import last_frame, read_field

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow
HALF = "low: {kind: wall, forces: yes}\nhigh: {kind: symmetry}\nleft: {kind: periodic, with: right}\n"
HALF += "right: {kind: periodic, with: left}"


def half_channel(les: str, folder: Path, ranks: int = 1) -> tuple[np.ndarray, np.ndarray, float]:
    """Heights over the wall, velocities there, the force on the wall: driven by 1 m/s2, nu = 0.1 m2/s, 1 m high."""
    write_mesh(channel((4, 16), (0.25, 1)), folder / "half.msh")
    more = "body_force_m_per_s2: [1, 0]\nfluid: {density_kg_per_m3: 1, viscosity_m2_per_s: 0.1}\n"
    more += "reference: {velocity_m_per_s: 5}\n"
    time = "end_s: 25\n  courant: 0.7\n  step_s: 0.02"
    report, frame = solve(write_case(folder / "half.yaml", "half.msh", HALF, f"{more}les: {les}\n", time), ranks)
    force = next(each["force_n"][0] for each in report["boundaries"] if each["name"] == "low")
    return frame.centers()[:, 1], frame.velocity[:, 0], force


@pytest.mark.parametrize("ranks", [1, 2])
def test_smagorinskys_eddies_give_the_profile_of_a_constant_mixing_length(ranks: int, tmp_path: Path) -> None:
    """(nu + l^2 g) g = f (H - y) with g = du/dy and l = C D: a quadratic equation for g, here with l = 0.25 m."""
    y, velocity, force = half_channel("{model: smagorinsky, coefficient: 4}", tmp_path, ranks)
    fine = np.linspace(0, 1, 4001)
    slope = (-0.1 + np.sqrt(0.01 + 4 * 0.25**2 * (1 - fine))) / (2 * 0.25**2)
    exact = np.concatenate([[0], np.cumsum((slope[1:] + slope[:-1]) / 2 * np.diff(fine))])
    assert np.abs(velocity - np.interp(y, fine, exact)).max() < 0.015 * exact.max()
    assert exact.max() < 0.5 * 5  # the laminar flow is twice as fast
    assert force == pytest.approx(0.25, rel=1e-3)  # it carries all of the force on the fluid


def test_wales_eddies_vanish_in_pure_shear(tmp_path: Path) -> None:
    y, velocity, _ = half_channel("{model: wale, coefficient: 4}", tmp_path)
    assert np.abs(velocity - (y - y**2 / 2) / 0.1).max() < 0.02


@pytest.mark.parametrize("model", ["wale", "smagorinsky"])
def test_eddies_between_turning_cylinders_are_those_of_the_formula(model: str, tmp_path: Path) -> None:
    """u = a r + b / r has the strain s = b / r^2 and the rotation a; then S:S = 2 s^2, and in WALE T:T = 2/3 (s^2 -
    a^2)^2. The constant is so small that the eddies do not act."""
    write_mesh(ring(), tmp_path / "ring.msh")
    boundaries = "in: {kind: moving_wall, rotation_rad_per_s: [0, 0, 1]}\nout: {kind: wall}"
    more = f"les: {{model: {model}, coefficient: 0.01}}\n"
    case = write_case(tmp_path / "ring.yaml", "ring.msh", boundaries, more, "end_s: 20\n  courant: 0.8")
    _, frame = solve(case)
    r = np.hypot(*frame.centers()[:, :2].T)
    strain, rotation = 4 / 3 / r**2, -1 / 3
    turned = 2 / 3 * (strain**2 - rotation**2) ** 2
    rate = turned**1.5 / ((2 * strain**2) ** 2.5 + turned**1.25) if model == "wale" else 2 * strain
    corners = np.array([frame.points[cell][:, :2] for cell in frame.cells])
    diagonals = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    area = np.abs(diagonals[0][:, 0] * diagonals[1][:, 1] - diagonals[0][:, 1] * diagonals[1][:, 0]) / 2
    found = read_field(case.with_suffix(".out"), "eddy_viscosity")
    inner = (r > 1.15) & (r < 1.55)  # gradients at walls are of first order; where s = a, WALE's are 0
    assert np.abs(found / (0.01**2 * area * rate) - 1)[inner].max() < 0.07


@pytest.mark.parametrize("kind", ["", "wedge"])
def test_a_scalar_has_the_profile_of_advection_and_diffusion(kind: str, tmp_path: Path) -> None:
    """phi = 10 (exp(u x / D) - 1) / (exp(u L / D) - 1) in a plug flow, of second order."""
    errors, sizes = [], (8, 16)
    for cells in sizes:
        shape, size = ((cells, 3, 3), (1, 0.3, 0.3)) if kind else ((cells, 4), (1, 0.4))
        write_mesh(channel(shape, size, kind), tmp_path / f"plug{cells}.msh")
        sides = "".join(
            f"{name}: {{kind: symmetry}}\n" for name in ("low", "high", "back", "front")[: 4 if kind else 2]
        )
        ends = "left: {kind: inlet, velocity_m_per_s: 1, scalar: 0}\nright: {kind: outlet, scalar: 10}"
        more = "start_velocity_m_per_s: [1, 0]\nscalar: {name: heat, diffusivity_m2_per_s: 0.2, start: 3}\n"
        case = write_case(
            tmp_path / f"plug{cells}.yaml", f"plug{cells}.msh", sides + ends, more, "end_s: 4\n  courant: 0.4"
        )
        _, frame = solve(case, 2)
        exact = 10 * np.expm1(5 * frame.centers()[:, 0]) / np.expm1(5)
        errors.append(float(np.sqrt(((read_field(case.with_suffix(".out"), "heat") - exact) ** 2).mean())))
    assert errors[1] < 0.1 and 1.6 < orders([1 / each for each in sizes], errors)[0] < 2.6


def test_a_scalar_is_kept_and_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """Nothing goes through walls without a value; what is given at one heats the box."""
    write_mesh(channel((8, 8), (1, 1)), tmp_path / "box.msh")
    lid = "high: {kind: moving_wall, velocity_m_per_s: [1, 0]}\nlow: {kind: wall}\nleft: {kind: wall}\n"
    more = "scalar: {name: heat, diffusivity_m2_per_s: 0.01, start: 5}\noutput: {checkpoint_steps: 5}\n"
    case = write_case(tmp_path / "box.yaml", "box.msh", lid + "right: {kind: wall}", more, "end_s: 2\n  courant: 0.5")
    solve(case)
    assert read_field(case.with_suffix(".out"), "heat") == pytest.approx(5, abs=1e-5)
    heats = []
    for name, ends in (("whole", [2]), ("parts", [1, 2])):
        for end in ends:
            time = f"end_s: {end}\n  step_s: 0.05"
            write_case(tmp_path / f"{name}.yaml", "box.msh", lid + "right: {kind: wall, scalar: 9}", more, time)
            solve(tmp_path / f"{name}.yaml", 1 if end == 1 else 2, "--resume", "yes", "--tolerance", 1e-10)
        heats.append(read_field(tmp_path / f"{name}.out", "heat"))
        assert last_frame(tmp_path / f"{name}.out").velocity.max() > 0.1
    assert heats[0].mean() > 5.1 and np.abs(heats[0] - heats[1]).max() < 1e-8


def test_the_bend_of_a_file_flows_as_the_programs_own(tmp_path: Path) -> None:
    """The same cells and the same parabola, in another unit of length; one reads a mesh and scales its inlet."""
    write("bend", tmp_path / "bend.msh", 800)
    boundaries = (
        "inlet: {kind: inlet, velocity_m_per_s: 1, profile: parabola}\nwall: {kind: wall}\noutlet: {kind: outlet}"
    )
    more = "fluid: {density_kg_per_m3: 1, viscosity_m2_per_s: 0.0025}\nreference: {length_m: 1, velocity_m_per_s: 1}\n"
    case = write_case(tmp_path / "bend.yaml", "bend.msh", boundaries, more, "end_s: 0.5\n  step_s: 0.025")
    report, frame = solve(case, 2)
    own = runs.solve(2, "bend", "--cells", 800, "--time", 0.5, "--step", 0.025, "--output", tmp_path / "own")
    other = last_frame(tmp_path / "own")
    assert frame.centers() == pytest.approx(other.centers(), abs=1e-6)
    # at so few cells the faces' parabola is 12 % too slow, and the file's is scaled to the mean velocity
    share = np.linalg.norm(frame.velocity, axis=1).mean() / np.linalg.norm(other.velocity, axis=1).mean()
    assert np.abs(frame.velocity - share * other.velocity).max() < 0.1
    flows = {each["name"]: each["mass_flow_out_kg_per_s"] for each in report["boundaries"]}
    assert flows["outlet"] == pytest.approx(-flows["inlet"], rel=1e-6) and report["cells"] == own["cells"]
    assert 0.7 < -flows["inlet"] < np.pi / 4 and flows["wall"] == 0


def test_a_mesh_that_cannot_resolve_a_flow_is_said_to_be_so_at_the_start(tmp_path: Path) -> None:
    for reynolds, count in ((200, 0), (1e7, 1)):
        options = ["--cells", 800, "--steps", 1, "--face-reynolds", 500, "--reynolds", reynolds]
        done = subprocess.run(
            runs.words("draft_tube", *options), capture_output=True, text=True, check=False, timeout=100
        )
        assert done.stderr.count("note: the mesh cannot resolve this flow: y+ of the cells at walls will be") == count
        assert done.returncode == (3 if count else 0)
