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
        words = ["git", "describe", "--always", "--dirty"]
        return subprocess.run(words, cwd=self.file.parent, capture_output=True, text=True).stdout.strip() or "unknown"
