"""Whatever a client asks for, its process at the server answers or ends with one line; it never crashes."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import waywiser as ww
from waywiser.errors import Error
from waywiser.offload.frames import send_frame
from waywiser.offload.functions import BUILT_IN
from waywiser.offload.worker import Worker

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 1 << 70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_GPUS = ww.virtual_gpus(1, 64 << 20)
_NUMBERS = st.integers(0, 5)
_TYPES = st.sampled_from(["<f8", "<f4", "|u1", "<c8", "O", "S4", "V0", "nothing", "<M8[s]"])
_SHAPES = st.lists(st.integers(0, 6), max_size=3) | st.just([1 << 40, 1 << 40]) | st.just([1 << 30])
_REQUESTS = st.one_of(
    st.fixed_dictionaries(
        {"do": st.just("array"), "array": _NUMBERS, "shape": _SHAPES, "dtype": _TYPES, "filled": st.booleans()}
    ),
    st.fixed_dictionaries(
        {
            "do": st.just("run"),
            "array": st.integers(6, 9),
            "function": st.sampled_from(sorted(BUILT_IN)) | st.text(max_size=4),
            "arrays": st.lists(st.integers(0, 9), max_size=3),
            "numbers": st.dictionaries(st.sampled_from(["factor", "times", "x"]), st.floats(0, 3), max_size=2),
        }
    ),
    st.fixed_dictionaries({"do": st.sampled_from(["get", "free", "sync"]), "array": st.integers(0, 9)}),
    st.dictionaries(st.sampled_from(["do", "array", "shape", "dtype", "arrays", "numbers"]), _VALUES),
)


class Client:
    """In place of the group: gives the worker requests and data, and keeps its answers."""

    def __init__(self) -> None:
        self.coming: list[np.ndarray[Any, Any]] = []
        self.answers: list[dict[str, Any]] = []

    def send(self, data: Any, to: int, tag: int) -> None:
        if tag == 1 and to == 1:
            (length,) = struct.unpack("<I", data[:4].tobytes())
            self.answers.append(json.loads(data[4 : 4 + length].tobytes()))

    def recv(self, out: Any, source: int, tag: int) -> Any:
        if tag == 2:
            out.fill(1)
            return out
        out[:] = self.coming.pop(0)
        return out

    def ask(self, worker: Worker, request: Any) -> bool:
        class Wire:
            def send(_, data: Any, to: int, tag: int) -> None:
                self.coming.append(data.copy())

        send_frame(Wire(), 0, request)  # type: ignore[arg-type]
        return worker.serve_one()


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, derandomize=True, max_examples=150)
@given(st.lists(_REQUESTS, max_size=12))
def test_any_requests(requests: list[Any]) -> None:
    client, limit = Client(), 4096
    worker = Worker(client, _GPUS, 0, dict(BUILT_IN), limit)  # type: ignore[arg-type]
    for request in requests:
        try:
            client.ask(worker, request)
        except Error as error:
            assert "\n" not in str(error)
            return  # the process ends
        assert 0 <= worker.used <= limit
    asked = sum(1 for request in requests if request.get("do") in ("get", "sync"))
    assert len(client.answers) == asked
