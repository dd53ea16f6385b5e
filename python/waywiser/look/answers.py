"""Answers of child processes that share standard output with whatever else is loaded there and prints: start-up files,
sitecustomize, libraries.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_MARK = "waywiser-answer: "


def give_answer(value: Any) -> None:
    """Writes it on a line of its own, which answer_in() finds among others."""
    sys.stdout.flush()
    os.write(1, f"\n{_MARK}{json.dumps(value)}\n".encode())


def answer_in(text: str) -> Any:
    """The last answer; a text without a mark is one as a whole. Raises ValueError if there is none."""
    marked = [line for line in text.splitlines() if line.startswith(_MARK)]
    return json.loads(marked[-1].removeprefix(_MARK) if marked else text)
