"""The operator of apps/wilson_dslash beside a plain NumPy version, which writes the four gamma matrices out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rank_jobs import ROOT, finish, runtime_folder, start

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow
PROGRAM = ROOT / "build/apps/wilson_dslash"
SHAPE = (4, 5, 3, 6)  # t, z, y, x
# DeGrand and Rossi's basis: of t, z, y, x.
GAMMA = np.array([
    [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]],
    [[0, 0, 1j, 0], [0, 0, 0, -1j], [-1j, 0, 0, 0], [0, 1j, 0, 0]],
    [[0, 0, 0, -1], [0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0]],
    [[0, 0, 0, 1j], [0, 0, 1j, 0], [0, -1j, 0, 0], [-1j, 0, 0, 0]],
])  # fmt: skip
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10}

if not PROGRAM.exists():
    pytest.skip("the programs are not built here", allow_module_level=True)


def test_the_gamma_matrices_are_those_of_dirac() -> None:
    for i, a in enumerate(GAMMA):
        assert (a == a.conj().T).all()
        for j, b in enumerate(GAMMA):
            assert (a @ b + b @ a == (2 * np.eye(4) if i == j else 0)).all()


def read(folder: Path, ranks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The whole lattice's links [site, mu, colour, colour] and spinors [site, spin, colour] before and after."""
    links = np.zeros((*SHAPE, 4, 3, 3), complex)
    before, after = np.zeros((*SHAPE, 4, 3), complex), np.zeros((*SHAPE, 4, 3), complex)
    for rank in range(ranks):
        content = (folder / f"{rank}.bin").read_bytes()
        first, count = np.frombuffer(content, np.int64, 8).reshape(2, 4)
        numbers = np.frombuffer(content, np.float64, offset=64).view(complex)
        box = tuple(slice(a, a + n) for a, n in zip(first, count, strict=True))
        sites = int(np.prod(count))
        parts = np.split(numbers, [36 * sites, 48 * sites])
        for whole, part in zip((links, before, after), parts, strict=True):
            whole[box] = part.reshape(*count, *whole.shape[4:])
    return links, before, after


def applied(links: np.ndarray, psi: np.ndarray) -> np.ndarray:
    result = np.zeros_like(psi)
    for mu, gamma in enumerate(GAMMA):
        u = links[..., mu, :, :]
        ahead = np.einsum("...ab,...sb->...sa", u, np.roll(psi, -1, mu))
        behind = np.einsum("...ba,...sb->...sa", np.roll(u, 1, mu).conj(), np.roll(psi, 1, mu))
        result += np.einsum("st,...ta->...sa", np.eye(4) - gamma, ahead)
        result += np.einsum("st,...ta->...sa", np.eye(4) + gamma, behind)
    return result


@pytest.mark.parametrize(("kind", "ranks"), [("float64", 1), ("float64", 4), ("float32", 2), ("float16", 2)])
def test_it_equals_numpy(kind: str, ranks: int, tmp_path: Path) -> None:
    size = "x".join(map(str, SHAPE))
    options = ["--size", size, "--type", kind, "--rounds", "1", "--steps", "2", "--way", "packed"]
    code, _, errors = finish(start("run", "-n", str(ranks), PROGRAM, *options, "--write", str(tmp_path)))
    assert (code, errors) == (0, "")
    links, before, after = read(tmp_path, ranks)
    unit = np.einsum("...ij,...kj->...ik", links, links.conj())
    assert np.abs(unit - np.eye(3)).max() < 64 * EPSILON[kind]
    assert np.abs(np.linalg.det(links) - 1).max() < 64 * EPSILON[kind]
    expected = applied(links, before) / 8
    assert np.abs(expected).max() > 0.5
    assert np.abs(after - expected).max() < 4 * EPSILON[kind]


@pytest.mark.parametrize("steps", [1, 4])
def test_the_rounded_angles_of_the_wave_are_no_error(steps: int) -> None:
    options = ["--size", "8x8x8x8", "--rounds", "1", "--steps", str(steps), "--way", "packed"]
    code, _, errors = finish(start("run", "-n", "2", PROGRAM, *options))
    assert (code, errors) == (0, "")
