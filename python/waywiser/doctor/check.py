"""A check is a row of the table: its subject, how it detects, the remedy, and the function that looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from waywiser.look.finding import Finding, Unknown, unknown
from waywiser.look.root import Root

Look = Callable[[Root], Finding]


@dataclass(frozen=True)
class Check:
    """One row of the table. `detection` and `remedy` are one line each."""

    id: str
    group: str
    title: str
    detection: str
    remedy: str
    look: Look


def looked(check: Check, root: Root) -> Finding:
    """The check's answer. If the check cannot look or fails, the answer is unknown, never ok."""
    try:
        return check.look(root)
    except Unknown as error:
        return unknown(str(error))
    except (ValueError, LookupError, TypeError, ArithmeticError, OSError, RecursionError) as error:
        return unknown(f"could not make sense of what this machine says: {type(error).__name__}: {error}")
