"""A heat map of percentages as a picture: `waywiser bench coalescing --plot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from waywiser.bench.coalescing import Point, rows_of
from waywiser.errors import InputError
from waywiser.files import write_bytes_atomically
from waywiser.units import format_bytes

ENDINGS = (".png", ".svg", ".pdf")


def check_name(file: Path) -> None:
    """Raises InputError for a file that no picture can be written to."""
    if file.suffix not in ENDINGS:
        raise InputError(f"--plot {file}: write a name that ends with {', '.join(ENDINGS)}")


def plot_coalescing(found: Sequence[Point], label: str, file: Path) -> None:
    """One map for each pair of memories: the speed gained by gathering, blue where it wins, red where it loses."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import TwoSlopeNorm
    from matplotlib.figure import Figure

    pairs = list(dict.fromkeys(each.memory for each in found))
    figure = Figure(figsize=(9.5, 0.8 + 3.9 * len(pairs)), dpi=110, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    reach = max(5.0, *(abs(each.change) for each in found))
    norm = TwoSlopeNorm(0.0, -min(reach, 100.0), min(reach, 100.0))
    for axes, pair in zip(figure.subplots(len(pairs), 1, squeeze=False)[:, 0], pairs, strict=True):
        rows = rows_of(found, pair)
        counts = [each.blocks for each in max(rows.values(), key=len)]
        values = [[each.change for each in row] + [0.0] * (len(counts) - len(row)) for row in rows.values()]
        image = axes.imshow(values, cmap="RdBu", norm=norm, aspect="auto")
        for y, row in enumerate(rows.values()):
            for x, each in enumerate(row):
                dark = abs(norm(each.change) - 0.5) > 0.33
                axes.text(x, y, f"{each.change:+.0f}{each.mark}", ha="center", va="center", fontsize=8,
                          color="white" if dark else "#1a1f25")  # fmt: skip
        axes.set_xticks(range(len(counts)), [str(count) for count in counts])
        axes.set_yticks(range(len(rows)), [format_bytes(size) for size in rows])
        axes.set_xlabel("number of blocks")
        axes.set_ylabel("bytes of a block")
        axes.set_title(f"{pair.replace('>', ' to ')}: percent of speed gained by gathering{label}", fontsize=10)
        figure.colorbar(image, ax=axes, label="percent")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file.suffix[1:])
    write_bytes_atomically(file, buffer.getvalue())
