"""`python -m waywiser.torch_backend`: compiles the back end in C++ for the installed PyTorch, unless it is compiled."""

from __future__ import annotations

import sys

from waywiser.errors import FAILURE, Error
from waywiser.torch_backend import compiled


def main() -> int:
    try:
        print(f"waywiser: the back end in C++ is {compiled.build()}")
    except Error as error:
        print(f"waywiser: {error}", file=sys.stderr)
        return FAILURE
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
