"""A case file: the mesh, the fluid, what is given at each boundary, times, output. docs/apps/navier_stokes_cases.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from yaml_table import Table, read_table

KINDS = ("inlet", "wall", "moving_wall", "symmetry", "outlet", "periodic")
PROFILES = ("uniform", "parabola", "power_law")
# Models of large-eddy simulation and their constants: solver/eddies.hpp has the sources.
LES = {"smagorinsky": 0.17, "wale": 0.325}
FIELDS = ("velocity", "pressure", "eddy_viscosity", "rank", "cell")


@dataclass
class Boundary:
    """What is given at one named boundary, in SI units."""

    kind: str
    refuse: Callable[[str], None]  # raises CaseError with the boundary's line
    velocity: list[float] | float | None = None  # of an inlet into the mesh, or a vector
    mass_flow: float | None = None
    profile: str = "uniform"
    exponent: float = 7
    swirl: float = 0
    rotation: list[float] | None = None
    center: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    forces: bool = False
    partner: str = ""
    scalar: float | None = None


@dataclass
class Scalar:
    """What the flow carries."""

    name: str
    diffusivity: float
    schmidt: float
    start: float


@dataclass
class Case:
    """A case, and the options of the program that it sets."""

    file: Path
    name: str
    mesh: Path
    scale: float
    density: float
    viscosity: float  # kinematic
    boundaries: dict[str, Boundary]
    start: list[float]
    force: list[float]
    length: float | None
    speed: float | None
    options: dict[str, object]
    les: tuple[str, float] | None
    scalar: Scalar | None


def read_case(file: Path) -> Case:
    """Raises CaseError: one line that names the line of the file, or what is wrong with it."""
    root = read_table(file)
    fluid = _needed(root, "fluid")
    density = fluid.number("density_kg_per_m3", 0, above=True)
    viscosity = _viscosity(fluid, density)
    reference = root.table("reference")
    name = root.text("name", default=file.stem)
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", name):
        root.refuse("name: letters, digits, _, - and . only")
    case = Case(
        file, name, file.parent / root.text("mesh"), root.number("scale", 0, default=1, above=True), density, viscosity,
        _boundaries(_needed(root, "boundaries")), root.vector("start_velocity_m_per_s", [0.0] * 3),
        root.vector("body_force_m_per_s2", [0.0] * 3), _optional(reference, "length_m"),
        _optional(reference, "velocity_m_per_s"), _options(root), _les(root), _scalar(root),
    )  # fmt: skip
    for boundary in case.boundaries.values():
        if boundary.scalar is not None and case.scalar is None:
            boundary.refuse("has a scalar, and the case has none")
    for table in (reference, fluid, root):
        if table is not None:
            table.end()
    return case


def _les(root: Table) -> tuple[str, float] | None:
    table = root.table("les")
    if table is None:
        return None
    model = table.text("model", tuple(LES))
    coefficient = table.number("coefficient", 0, 10, LES[model], above=True)
    table.end()
    return model, coefficient


def _scalar(root: Table) -> Scalar | None:
    table = root.table("scalar")
    if table is None:
        return None
    name = table.text("name", default="scalar")
    if not re.fullmatch(r"[A-Za-z0-9_]{1,100}", name) or name in FIELDS:
        table.refuse(f"name: letters, digits and _ only, and none of {', '.join(FIELDS)}")
    made = Scalar(
        name, table.number("diffusivity_m2_per_s", 0, above=True),
        table.number("turbulent_schmidt", 0, default=0.7, above=True), table.number("start", default=0),
    )  # fmt: skip
    table.end()
    return made


def _needed(root: Table, key: str) -> Table:
    table = root.table(key, needed=True)
    assert table is not None
    return table


def _optional(table: Table | None, key: str, above: bool = True) -> float | None:
    return table.number(key, 0, above=above) if table is not None and key in table.nodes else _asked(table, key)


def _asked(table: Table | None, key: str) -> None:
    if table is not None:
        table.node(key)


def _viscosity(fluid: Table, density: float) -> float:
    dynamic, kinematic = (_optional(fluid, key) for key in ("viscosity_pa_s", "viscosity_m2_per_s"))
    if (dynamic is None) == (kinematic is None):
        fluid.refuse("fluid needs either viscosity_pa_s or viscosity_m2_per_s")
    return dynamic / density if dynamic is not None else float(kinematic or 0)


def _boundaries(table: Table) -> dict[str, Boundary]:
    found = {}
    for name in table.nodes:
        each = table.table(name)
        assert each is not None
        found[name] = _boundary(each)
        each.end()
    return found


def _boundary(table: Table) -> Boundary:
    made = Boundary(table.text("kind", KINDS), lambda why: table.refuse(f"boundary {table.what!r}: {why}"))
    if made.kind == "inlet":
        _inlet(made, table)
    elif made.kind == "moving_wall":
        if ("velocity_m_per_s" in table.nodes) == ("rotation_rad_per_s" in table.nodes):
            made.refuse("needs either velocity_m_per_s or rotation_rad_per_s")
        made.velocity = table.vector("velocity_m_per_s", [0.0] * 3)
        if "rotation_rad_per_s" in table.nodes:
            made.rotation = table.vector("rotation_rad_per_s")
        made.center = table.vector("center_m", made.center)
    elif made.kind == "periodic":
        made.partner = table.text("with")
    if made.kind in ("wall", "moving_wall"):
        made.forces = table.flag("forces")
    if made.kind in ("inlet", "wall", "moving_wall", "outlet") and "scalar" in table.nodes:
        made.scalar = table.number("scalar")
    elif made.kind not in ("symmetry", "periodic"):
        table.node("scalar")
    return made


def _inlet(made: Boundary, table: Table) -> None:
    if ("velocity_m_per_s" in table.nodes) == ("mass_flow_kg_per_s" in table.nodes):
        made.refuse("needs either velocity_m_per_s or mass_flow_kg_per_s")
    node = table.node("velocity_m_per_s")
    made.mass_flow = _optional(table, "mass_flow_kg_per_s")
    if node is not None and isinstance(node.value, list):
        made.velocity = table.vector("velocity_m_per_s")
    elif node is not None:
        made.velocity = table.number("velocity_m_per_s", 0, above=True)
    made.profile = table.text("profile", PROFILES, "uniform")
    if made.profile == "power_law":
        made.exponent = table.number("exponent", 1, 100, 7)
    made.swirl = table.number("swirl_rad_per_s", default=0)
    if isinstance(made.velocity, list) and (made.profile != "uniform" or made.swirl):
        made.refuse("a velocity that is a vector is uniform and does not turn")


def _options(root: Table) -> dict[str, object]:
    """Those of the program, under its names."""
    time, output, solver = _needed(root, "time"), root.table("output"), root.table("solver")
    options: dict[str, object] = {"time": time.number("end_s", 0, above=True)}
    if "courant" not in time.nodes and "step_s" not in time.nodes:
        time.refuse("time needs courant, step_s, or both")
    if "courant" in time.nodes:
        options |= {"adaptive": "yes", "courant": time.number("courant", 1e-6, 100)}
    time.node("courant")
    step = _optional(time, "step_s")
    options |= {"step": step} if step is not None else {}
    time.end()
    for table, keys in (
        (output, {"frames": "frames", "record_steps": "record", "checkpoint_steps": "checkpoint",
                  "average_from_s": "average-from"}),
        (solver, {"tolerance": "tolerance", "iterations": "iterations", "corrections": "corrections",
                  "face_reynolds": "face-reynolds"}),
    ):  # fmt: skip
        for key, option in keys.items() if table is not None else ():
            value = (
                _optional(table, key, key != "average_from_s")
                if key != "face_reynolds"
                else table.number(key, 0, default=500)
            )
            if value is not None:
                options[option] = int(value) if value == int(value) else value
        if table is not None:
            table.end()
    return options
