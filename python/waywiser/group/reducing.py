"""What reductions have in common: numbers as arrays, and the result that is made where it is needed."""

from __future__ import annotations

from typing import Any

from waywiser.group.arrays import made, stream_for
from waywiser.group.rank import Rank
from waywiser.group.scalars import as_array, as_scalar, is_scalar


class Reducing(Rank):
    """A base of the calls that combine numbers or arrays of one shape."""

    def _reduced(self, call: str, data: Any, out: Any, op: str, *more: int, stream: Any, here: bool = True) -> Any:
        """`more`: the core's further arguments. `here`: whether this rank gets the result; the others get None."""
        if out is None and is_scalar(data):
            found = self._reduced(call, as_array(data), None, op, *more, stream=None, here=here)
            return None if found is None else as_scalar(found, data)
        used = stream_for(stream, data, out)
        if not here:
            out = None
        elif out is None:
            out = made(data, None, used)
        getattr(self._core, call)(data, out, op, *more, used)
        return out
