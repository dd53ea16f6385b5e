"""Writes pages for Sphinx, in Markdown with directives."""

from __future__ import annotations

import re


def plain(text: str) -> str:
    """A text of a comment or a docstring: code in backticks and paragraphs stay, no other character is a mark."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*<\[\]\\_$])", r"\\\1", part) for part in parts)


def directive(name: str, argument: str, body: str = "") -> str:
    """A directive around `body`, which may hold others."""
    longest = max((len(marks) for marks in re.findall(r"^:{3,}", body, re.MULTILINE)), default=2)
    fence = ":" * (longest + 1)
    return f"{fence}{{{name}}} {argument}\n{body.strip()}\n{fence}\n"


def fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def page(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
