"""YAML as nodes that know their lines; refusals in one line."""

from __future__ import annotations

import yaml

from waywiser.errors import InputError


def root_of(text: str, what: str) -> yaml.Node | None:
    """The root of the document, None if it is empty. Raises InputError with the line where it is not YAML."""
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"{what}{line}: not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"{what}: not YAML: {' '.join(str(error).split())[:200]}") from None
    return root
