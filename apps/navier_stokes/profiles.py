"""Velocities at inlets and moving walls."""

from __future__ import annotations

import numpy as np
from case_file import Boundary
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROUND = 0.15  # by so much at most the area of a round inlet may differ from a circle's


def profile(boundary: Boundary, center: Floats, area: Floats, points: Floats, density: float, flat: bool) -> Floats:
    """The velocity at the centres of an inlet's faces, (faces, 3).

    `uniform`; `parabola`, 1 - (r / R)^2, that of a long round pipe or of two walls (Poiseuille); `power_law`,
    (1 - r / R)^(1 / n), that of turbulent pipes (Nikuradse, 1932; n = 7 is Prandtl's). r is the distance from the
    middle, R its greatest. All are scaled to the mean velocity or the mass flow. With swirl, the fluid turns around the
    middle, at each place by the profile's share of `swirl_rad_per_s`.
    """
    if isinstance(boundary.velocity, list):
        return np.tile(np.array(boundary.velocity), (len(center), 1))
    sizes = np.linalg.norm(area, axis=1)
    inward = -area.sum(axis=0) / np.linalg.norm(area.sum(axis=0))
    middle = (sizes[:, None] * center).sum(axis=0) / sizes.sum()
    apart = center - middle
    apart -= (apart @ inward)[:, None] * inward
    reach = np.linalg.norm(points - middle, axis=2).max()
    if boundary.profile != "uniform":
        _round(boundary, float(sizes.sum()), float(reach), flat)
    share = _share(boundary, np.linalg.norm(apart, axis=1) / reach)
    through = float((share * (area @ -inward)).sum())  # of a greatest velocity of 1
    wanted = _volume_flow(boundary, area, inward, density)
    turning = boundary.swirl * share[:, None] * np.cross(inward, apart)
    return wanted / through * share[:, None] * inward + turning


def _volume_flow(boundary: Boundary, area: Floats, inward: Floats, density: float) -> float:
    if boundary.mass_flow is not None:
        return boundary.mass_flow / density
    assert isinstance(boundary.velocity, float)
    return boundary.velocity * float((area @ -inward).sum())


def _share(boundary: Boundary, r: Floats) -> Floats:
    inside = np.clip(1 - r, 0, 1)
    if boundary.profile == "parabola":
        return inside * (2 - inside)  # 1 - r^2
    if boundary.profile == "power_law":
        return np.asarray(inside ** (1 / boundary.exponent), np.float64)
    return np.ones(len(r))


def _round(boundary: Boundary, area: float, reach: float, flat: bool) -> None:
    expected = 2 * reach if flat else np.pi * reach**2
    if abs(area / expected - 1) > ROUND:
        boundary.refuse(f"profile {boundary.profile} needs an inlet that is {'straight' if flat else 'round'}")


def moving(boundary: Boundary, center: Floats, area: Floats) -> Floats:
    """The velocity of a wall at its faces' centres, without what would go through it."""
    velocity = np.tile(np.array(boundary.velocity, float), (len(center), 1))
    if boundary.rotation is not None:
        velocity = np.cross(np.array(boundary.rotation), center - np.array(boundary.center))
    normal = area / np.linalg.norm(area, axis=1)[:, None]
    through = (velocity * normal).sum(axis=1)
    if (np.abs(through) > 0.2 * np.linalg.norm(velocity, axis=1)).any():
        boundary.refuse("the wall would move through the fluid")
    return velocity - through[:, None] * normal
