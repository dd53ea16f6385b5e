"""The picture of `waywiser bench merge --plot`: a bar for each way, and the published one beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from waywiser.bench.merge import Case
from waywiser.files import write_bytes_atomically
from waywiser.units import format_bytes

_OURS, _PUBLISHED = "#1769aa", "#b8c1cc"
_WIDE = 5


def plot_merge(found: Sequence[Case], label: str, file: Path) -> None:
    """Rates, with a logarithmic axis where they differ much: from TCP to NVLink it is two orders of magnitude."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    simulates = found[0].simulated
    figure = Figure(figsize=(8.5, 1.3 + 0.62 * len(found)), dpi=110, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    names = [f"{one.way}, {format_bytes(one.bytes)}" for one in found]
    for row, one in enumerate(found):
        bars = [(one.rate, _OURS, -0.19 if one.published else 0.0)]
        if one.published:
            bars.append((one.published, _PUBLISHED, 0.19))
        for rate, color, shift in bars:
            axes.barh(row + shift, rate / 1e9, height=0.36, color=color)
            axes.annotate(f" {rate / 1e9:.3g}", (rate / 1e9, row + shift), va="center", fontsize=9, color="#1f2933")
    axes.set_yticks(range(len(found)), names)
    axes.invert_yaxis()
    rates = [rate / 1e9 for one in found for rate in (one.rate, one.published) if rate]
    if max(rates) > _WIDE * min(rates):
        axes.set_xscale("log")
        axes.set_xlim(min(rates) / 2, max(rates) * 2)
    else:
        axes.set_xlim(0, max(rates) * 1.15)
    axes.set_xlabel("GB/s: bytes of both tables of all ranks / time")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    what = "Exchange of a merge" if simulates else "Merge of two tables"
    axes.set_title(f"{what}, {found[0].ranks} ranks{label}", fontsize=11)
    if any(one.published for one in found):
        for color, name in ((_OURS, "simulated: the exchange"), (_PUBLISHED, "published: the whole program")):
            axes.barh(-9, 0, color=color, label=name)
        axes.set_ylim(len(found) - 0.4, -0.6)
        axes.legend(frameon=False, fontsize=9, loc="upper right")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file.suffix[1:])
    write_bytes_atomically(file, buffer.getvalue())
