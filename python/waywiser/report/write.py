"""Writes the report's files."""

from __future__ import annotations

from pathlib import Path

from waywiser.files import write_text_atomically
from waywiser.report.page import render
from waywiser.report.settings_worth import JobTable
from waywiser.results import Results


def write_report(results: Results, folder: Path, pictures: bool = True, jobs: JobTable | None = None) -> Path:
    """Writes report.html and plots/*.png of `results` into `folder`; returns the page. Raises InputError."""
    page = render(results, jobs)
    Results(folder).make_writable()
    if pictures:
        from waywiser.report.pictures import write_pictures

        write_pictures(results, folder / "plots")
    file = folder / "report.html"
    write_text_atomically(file, page)
    return file
