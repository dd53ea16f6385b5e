"""A table of results in a file of the repository: the last result of each name, with its date and commit."""

import subprocess
import time
from pathlib import Path


class Noted:
    """`file` ends with a table in Markdown whose first column is the name; the file must have its head line."""

    def __init__(self, file):
        self.file = Path(file)

    def add(self, row):
        """Replaces an older row of the same name. Appends the date and the commit."""
        lines = self.file.read_text().splitlines()
        mark = f"| {row[0]} |"
        new = "| " + " | ".join(str(cell) for cell in [*row, time.strftime("%Y-%m-%d"), self._commit()]) + " |"
        kept = [line for line in lines if not line.startswith(mark)]
        self.file.write_text("\n".join([*kept, new]) + "\n")

    def _commit(self):
        """Of all files but this one, which changes with each row."""
        folder = self.file.resolve().parent
        told = subprocess.run(["git", "describe", "--always"], cwd=folder, capture_output=True, text=True)
        others = ["git", "diff", "--quiet", "HEAD", "--", ":/", f":(exclude){self.file.name}"]
        changed = subprocess.run(others, cwd=folder, capture_output=True).returncode != 0
        return (told.stdout.strip() or "unknown") + ("-dirty" if changed else "")
