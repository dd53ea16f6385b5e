"""The page as Chromium shows it: on paper no column is cut off; in dark mode nothing is white."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import made_up
import pytest
from PIL import Image

from waywiser.report.page import render
from waywiser.results import Results

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=20000",
    "--no-pdf-header-footer",
)
_WORD = re.compile(r'<word xMin="([\d.]+)" yMin="[\d.]+" xMax="([\d.]+)" yMax="[\d.]+">([^<]*)</word>')

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not _CHROMIUM or not shutil.which("pdftotext"), reason="needs chromium and pdftotext (poppler-utils)"
    ),
]


def _browse(folder: Path, *options: str) -> None:
    html = folder / "report.html"
    html.write_text(render(Results(made_up.write(folder))), encoding="utf-8")
    command = [str(_CHROMIUM), *_OPTIONS, f"--user-data-dir={folder / 'browser'}", *options, str(html)]
    subprocess.run(command, check=True, capture_output=True, timeout=240)


def _printed(folder: Path) -> list[str]:
    """The pages as text with the place of each word."""
    pdf = folder / "report.pdf"
    _browse(folder, f"--print-to-pdf={pdf}")
    told = subprocess.run(["pdftotext", "-bbox", str(pdf), "-"], check=True, capture_output=True, timeout=60)
    return told.stdout.decode().split("<page ")[1:]


def test_no_column_is_cut_off(tmp_path: Path) -> None:
    pages = _printed(tmp_path)
    words: list[str] = []
    for page in pages:
        width = float(re.search(r'width="([\d.]+)"', page)[1])  # type: ignore[index]
        for left, right, word in _WORD.findall(page):
            assert float(left) >= 0 and float(right) <= width, (word, right, width)
            words.append(word)
    text = " ".join(words)
    assert "Of limit" in text and text.count("Bandwidth") >= 8  # the last column, and the titles of the curves
    for row in re.findall(r"host to GPU, PHB within one process .{0,400}", text):
        assert " % " in row


def test_in_dark_mode_nothing_is_white(tmp_path: Path) -> None:
    """The drawing of the machine was a white block."""
    shot = tmp_path / "dark.png"
    dark = "--blink-settings=preferredColorScheme=0"
    _browse(tmp_path, dark, "--window-size=1000,1800", f"--screenshot={shot}")
    with Image.open(shot) as picture:
        histogram = picture.convert("L").histogram()
    assert sum(histogram[:64]) > 0.8 * sum(histogram) and sum(histogram[240:]) < 0.02 * sum(histogram)
