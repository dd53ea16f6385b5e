"""Writes what `navier_stokes --case FILE.flow` reads of a case: cases/prepared_case.hpp has the format."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from case_file import Case
from case_mesh import SHAPES, TURNED, CaseMesh, Floats, Numbers, case_mesh
from numpy.typing import NDArray
from yaml_table import CaseError

from waywiser.mesh import partition


def prepare(case: Case, folder: Path, ranks: int = 1) -> tuple[Path, dict[str, object]]:
    """The file in this folder, and options of the program; with the parts of so many ranks if there is METIS. Raises
    CaseError.
    """
    made = case_mesh(case)
    length, speed = reference(case, made)
    texts: dict[str, object] = {
        "name": case.name, "dimensions": 2 if made.mesh.is_flat else 3, "density_kg_per_m3": repr(case.density),
        "viscosity_m2_per_s": repr(case.viscosity), "length_m": repr(length), "velocity_m_per_s": repr(speed),
    }  # fmt: skip
    if case.les is not None:
        texts |= {"les": case.les[0], "les_coefficient": repr(case.les[1])}
    if case.scalar is not None:
        texts |= {
            "scalar": case.scalar.name, "scalar_diffusivity_m2_per_s": repr(case.scalar.diffusivity),
            "scalar_schmidt": repr(case.scalar.schmidt), "scalar_start": repr(case.scalar.start),
        }  # fmt: skip
    texts |= {f"boundary{i}": name for i, name in enumerate(made.names)}
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{case.name}.flow"
    arrays = arrays_of(case, made)
    texts["key"] = key_of(texts, arrays)
    # The flux forgets what it had beyond the cells in a fifth of the time in which the flow passes the length.
    texts |= {"end_s": repr(case.options["time"]), "memory_s": repr(0.2 * length / speed)}
    parts = partition(made.mesh, ranks)
    if ranks > 1 and not parts.why and len(made.mesh) >= ranks:
        texts, arrays = {**texts, "parts": ranks}, {**arrays, "part_of": parts.of_cell}
    write(file, texts, arrays)
    return file, case.options


def key_of(texts: dict[str, object], arrays: dict[str, NDArray[np.generic]]) -> str:
    """What tells the flow from others: checkpoints have it."""
    digest = hashlib.sha256(repr(sorted(texts.items())).encode())
    for name, each in sorted(arrays.items()):
        digest.update(f"{name} {each.shape}".encode() + np.ascontiguousarray(each).tobytes())
    return digest.hexdigest()


def reference(case: Case, made: CaseMesh) -> tuple[float, float]:
    """The length and speed of the Reynolds number: the mesh's least extent and the greatest velocity, unless given."""
    points = made.mesh.points
    fastest = np.linalg.norm(np.vstack([made.border.velocity, [case.start]]), axis=1).max()
    length = case.length or float(np.ptp(points, axis=0).min())
    speed = case.speed or float(fastest)
    if not speed:
        raise CaseError(f"{case.file}: reference needs velocity_m_per_s: only a force drives this flow, if any")
    return length, speed


def arrays_of(case: Case, made: CaseMesh) -> dict[str, NDArray[np.generic]]:
    """By the names of the format."""
    mesh, border = made.mesh, made.border
    points = np.pad(mesh.points, ((0, 0), (0, 3 - mesh.points.shape[1])))
    vertices, counts = turned(made)
    arrays: dict[str, NDArray[np.generic]] = {
        "points": points, "vertices": vertices, "first": np.concatenate([[0], np.cumsum(counts)]),
        "shapes": np.concatenate([np.full(len(corners), SHAPES[kind]) for kind, corners in mesh.blocks]),
        "border": border.corners, "border_kind": border.kind, "border_name": border.name, "border_body": border.body,
        "border_velocity": border.velocity, "border_has_scalar": np.isfinite(border.scalar).astype(np.int64),
        "border_scalar": np.nan_to_num(border.scalar), "start": np.array(case.start), "force": np.array(case.force),
    }  # fmt: skip
    return arrays if made.same_as is None else {**arrays, "same_as": made.same_as}


def turned(made: CaseMesh) -> tuple[Numbers, Numbers]:
    """The corners of all cells, in the order of a positive volume, and how many each has."""
    found, counts, first = [], [], 0
    for kind, corners in made.mesh.blocks:
        backwards = made.volume[first : first + len(corners)] < 0
        right = np.where(backwards[:, None], corners[:, TURNED[kind]], corners)
        found.append(right.reshape(-1))
        counts.append(np.full(len(corners), corners.shape[1]))
        first += len(corners)
    return np.concatenate(found), np.concatenate(counts)


def write(file: Path, texts: dict[str, object], arrays: dict[str, NDArray[np.generic]]) -> None:
    """Lines, then the bytes of the arrays; it replaces a file that is there at once."""
    typed: dict[str, Floats | Numbers] = {
        name: np.ascontiguousarray(each, np.float64 if each.dtype.kind == "f" else np.int64)
        for name, each in arrays.items()
    }
    head = ["flow case 1", *(f"{name}: {value}" for name, value in texts.items())]
    head += [f"array {name} {'f8' if each.dtype.kind == 'f' else 'i8'} {each.size}" for name, each in typed.items()]
    new = file.with_suffix(".new")
    with new.open("wb") as out:
        out.write("\n".join([*head, "data", ""]).encode())
        for each in typed.values():
            out.write(each.astype(each.dtype.newbyteorder("<")).tobytes())
    new.replace(file)
