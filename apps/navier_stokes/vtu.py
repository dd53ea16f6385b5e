"""Reads the files that navier_stokes writes for ParaView, with NumPy alone."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DTYPES = {"Float64": "<f8", "Int64": "<i8", "Int32": "<i4", "UInt8": "u1"}


@dataclass
class Frame:
    """One time of a flow, all ranks together; cells are in the order of the whole mesh."""

    points: np.ndarray  # (points, 3)
    cells: list[np.ndarray]  # the points of each cell
    velocity: np.ndarray  # (cells, 3)
    pressure: np.ndarray  # (cells,)
    rank: np.ndarray  # (cells,)

    def centers(self) -> np.ndarray:
        """The mean of the points of each cell, (cells, 3)."""
        return np.array([self.points[cell].mean(axis=0) for cell in self.cells])


def read_piece(file: Path) -> dict[str, np.ndarray]:
    """The arrays of a .vtu file by name."""
    data = file.read_bytes()
    head, _, rest = data.partition(b'<AppendedData encoding="raw">\n_')
    arrays = {}
    for line in re.findall(rb"<DataArray [^>]*/>", head):
        array = xml.etree.ElementTree.fromstring(line).attrib
        offset = int(array["offset"])
        (length,) = struct.unpack_from("<Q", rest, offset)
        values = np.frombuffer(
            rest, DTYPES[array["type"]], length // np.dtype(DTYPES[array["type"]]).itemsize, offset + 8
        )
        columns = int(array["NumberOfComponents"])
        arrays[array["Name"]] = values.reshape(-1, columns) if columns > 1 else values
    return arrays


def read_frame(file: Path) -> Frame:
    """A .pvtu file with the files that it lists."""
    pieces = [read_piece(file.with_name(name)) for name in re.findall(r'<Piece Source="([^"]+)"', file.read_text())]
    cells, before = [], 0
    for piece in pieces:
        cells += np.split(piece["connectivity"] + before, piece["offsets"][:-1])
        before += len(piece["points"])
    together = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0] if name != "offsets"}
    order = np.argsort(together["cell"])
    return Frame(
        points=together["points"],
        cells=[cells[i] for i in order],
        velocity=together["velocity"][order],
        pressure=together["pressure"][order],
        rank=together["rank"][order],
    )


def read_field(folder: Path, name: str) -> np.ndarray:
    """A field of the newest frame, (cells,) or (cells, components), cells in the order of the whole mesh."""
    file = read_series(folder)[-1][1]
    pieces = [read_piece(file.with_name(each)) for each in re.findall(r'<Piece Source="([^"]+)"', file.read_text())]
    order = np.argsort(np.concatenate([piece["cell"] for piece in pieces]))
    return np.concatenate([piece[name] for piece in pieces])[order]


def read_series(folder: Path) -> list[tuple[float, Path]]:
    """Times and files of a folder's time series."""
    found = re.findall(r'<DataSet timestep="([^"]+)" file="([^"]+)"/>', (folder / "flow.pvd").read_text())
    return [(float(time), folder / name) for time, name in found]


def last_frame(folder: Path) -> Frame:
    """The newest frame of a folder's time series."""
    return read_frame(read_series(folder)[-1][1])
