"""Colours and looks of the page: contrast in both schemes, scales of heat maps, curves apart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from waywiser.report.curves import all_curves
from waywiser.report.matrices import matrices
from waywiser.report.peers import peer_tables
from waywiser.results import recorded

Json = dict[str, Any]
_CSS = Path(__file__).parents[2] / "python/waywiser/report/page.css"


def test_the_diagonal_does_not_take_the_scale(tmp_path: Path) -> None:
    matrix = matrices(recorded("recorded-4xh200").needed_profile(), None, 1)[0]
    shares = {pair: matrix.share(cell) for pair, cell in matrix.cells.items()}
    assert shares["gpu0", "gpu1"] == pytest.approx(1.0) and shares["host0", "gpu0"] == pytest.approx(0.0, abs=0.01)
    assert shares["gpu0", "gpu0"] == 1.0


def test_the_diagonal_does_not_take_the_scale_of_the_peer_report() -> None:
    peers = {"one_way": {"on": [[2000.0, 380.0, 40.0], [380.0, 2000.0, 40.0], [40.0, 40.0, 2000.0]]}}
    shares = [float(one) for one in re.findall(r"--share:([\d.]+)", peer_tables(peers) or "")]
    assert shares == [1, 1, 0, 1, 1, 0, 0, 0, 1]
    one_gpu = peer_tables({"one_way": {"on": [[2000.0]], "off": [[0.0]]}}) or ""  # no other pair; nothing was timed
    assert re.findall(r"--share:([\d.]+)", one_gpu) == ["0.500"] and "0.00" in one_gpu


def test_every_curve_of_a_card_has_its_own_look(tmp_path: Path) -> None:
    results = recorded("recorded-4xh200")
    for card in all_curves(results.needed_profile(), results.plan):
        for drawn in card["operations"].values():
            looks = [(one["mechanism"], one["dash"], one["shade"]) for one in drawn["series"]]
            assert len(looks) == len(set(looks))
    assert max(one["dash"] for one in drawn["series"]) < 6


# The colours: 4.5 : 1 is what WCAG 2 AA wants of text.


def _variables(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+):\s*([^;]+);", block))


def _schemes() -> dict[str, dict[str, str]]:
    css = _CSS.read_text()
    light = _variables(css[css.index(":root {") : css.index("}", css.index(":root {"))])
    start = css.index(":root:not(.printing) {")
    return {"light": light, "dark": light | _variables(css[start : css.index("}", start)])}


def _rgb(text: str) -> tuple[float, ...]:
    if text.startswith("#"):
        return tuple(int(text[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, saturation, lightness = (float(part.rstrip("%")) for part in text.split())
    s, light = saturation / 100, lightness / 100
    chroma = s * min(light, 1 - light)

    def channel(n: int) -> float:
        k = (n + hue / 30) % 12
        return light - chroma * max(-1.0, min(k - 3, 9 - k, 1.0))

    return channel(0), channel(8), channel(4)


def _luminance(rgb: tuple[float, ...]) -> float:
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def _contrast(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(scheme: str) -> None:
    colours = _schemes()[scheme]
    for text in ("ink", "muted", "accent", "good", "bad"):
        for ground in ("paper", "card", "soft"):
            found = _contrast(_rgb(colours[text]), _rgb(colours[ground]))
            assert found >= 4.5, (text, ground, found)
    assert _contrast(_rgb(colours["warn-ink"]), _rgb(colours["warn"])) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_on_every_colour_of_a_heat_map_have_enough_contrast(scheme: str) -> None:
    css, colours = _CSS.read_text(), _schemes()[scheme]
    assert ".heat td small { color: inherit; }" in css  # the small print has the colour of the figure
    assert not re.search(r"\.heat[^{}]*\{[^}]*color: #fff", css)
    least = re.search(r"\.heat td \{ background: hsl\(var\(--heat\) / calc\(([.\d]+) \+ var\(--most\)", css)
    assert least
    heat, card = _rgb(colours["heat"]), _rgb(colours["card"])
    for step in range(11):
        alpha = float(least[1]) + float(colours["most"]) * step / 10
        ground = tuple(alpha * h + (1 - alpha) * c for h, c in zip(heat, card, strict=True))
        assert _contrast(_rgb(colours["ink"]), ground) >= 4.5, (step, alpha)
