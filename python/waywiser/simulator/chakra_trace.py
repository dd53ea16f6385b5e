"""What a GPU computed in a training step, from a Chakra execution trace (MLCommons): messages of Protocol Buffers.

The fields are those of `schema/protobuf/et_def.proto` of mlcommons/chakra: each message follows its length; the first
is the file's, each further one a node with an id (1), a name (2), a type (3), callers (4), nodes before it (5), a
duration in whole microseconds (7) and attributes (10): `is_cpu_op`, false for what ran on the GPU, and the
thread `tid`.
The caller of a kernel, or else the operator before it, launched it. What `autograd::engine` called, or what ran on
another thread than the first operator, as PyTorch's backward passes of GPUs do, belongs to the backward pass; what
`Optimizer.step` or `Optimizer.zero_grad` called to the optimizer; all else to the forward pass, with it an optimizer
whose caller the converter has left out. Nodes of communication do not count. There are no times at which nodes began,
so time in which the GPU waits is not known and left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from waywiser.simulator.traced import BACKWARD, FORWARD, OPTIMIZER, Kernels, is_product

_COMPUTES = 4  # a type of node
_ID, _NAME, _TYPE, _CALLERS, _BEFORE, _MICROS, _ATTRIBUTE = 1, 2, 3, 4, 5, 7, 10
_WORD, _FLAG = 1, 27  # of an attribute: its name, a value that is true or false
_NUMBERS = (7, 9, 11, 13)  # values that are whole numbers
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # how a value is written
_STEP = "ProfilerStep#"
_DEEPEST = 1000  # callers above each other

Value = int | bytes


@dataclass(frozen=True)
class Chakra:
    """What each phase of a step consists of: the mean of `steps` steps."""

    took: dict[str, Kernels]
    steps: int


@dataclass
class _Node:
    name: str = ""
    kind: int = 0
    callers: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    micros: int = 0
    on_gpu: bool | None = None
    thread: int | None = None


def is_chakra(data: bytes) -> bool:
    """Whether it begins with a message of the length that is written before it, and of a file's fields: 1 and 2."""
    try:
        size, at = _varint(data, 0)
        return 0 < size <= len(data) - at and all(number in (1, 2) for number, _ in _fields(data[at : at + size]))
    except ValueError:
        return False


def read_chakra(data: bytes) -> Chakra:
    """Raises ValueError: not such a file."""
    nodes = dict(_node(message) for number, message in enumerate(_messages(data)) if number > 0)
    known = any(node.on_gpu is not None for node in nodes.values())
    first = next((nodes[name].thread for name in sorted(nodes) if not nodes[name].on_gpu), None)
    micros = dict.fromkeys(itertools.product((FORWARD, BACKWARD, OPTIMIZER), (True, False)), 0.0)
    for name, node in nodes.items():
        if node.kind == _COMPUTES and (node.on_gpu or not known):
            micros[_phase(name, nodes, first), is_product(node.name)] += node.micros
    steps = max(1, sum(node.name.startswith(_STEP) for node in nodes.values()))
    each = {key: took * 1e-6 / steps for key, took in micros.items()}
    phases = (FORWARD, BACKWARD, OPTIMIZER)
    return Chakra({phase: Kernels(each[phase, True], each[phase, False]) for phase in phases}, steps)


def _phase(name: int, nodes: dict[int, _Node], first: int | None) -> str:
    """What the nearest caller says whose name says it, else its thread. `first`: the thread of the first operator."""
    thread = None
    for _ in range(_DEEPEST):
        node = nodes[name]
        if node.name.startswith("autograd::engine"):
            return BACKWARD
        if node.name.startswith("Optimizer."):
            return OPTIMIZER
        if thread is None and not node.on_gpu:
            thread = node.thread
        above = [one for one in node.callers if one in nodes]
        if not above and node.on_gpu:
            above = [one for one in node.before if one in nodes and not nodes[one].on_gpu]
        if not above:
            break
        name = above[0]
    return FORWARD if thread in (None, first) else BACKWARD


def _messages(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = _varint(data, at)
        if size > len(data) - at:
            raise ValueError("a message ends after the file")
        yield data[at : at + size]
        at += size


def _node(message: bytes) -> tuple[int, _Node]:
    name, node = 0, _Node()
    for number, value in _fields(message):
        if number == _ID:
            name = _whole(value)
        elif number == _NAME:
            node.name = _bytes(value).decode("utf-8", "replace")
        elif number == _TYPE:
            node.kind = _whole(value)
        elif number in (_CALLERS, _BEFORE):
            names = node.callers if number == _CALLERS else node.before
            names += [value] if isinstance(value, int) else _packed(value)
        elif number == _MICROS:
            node.micros = _whole(value)
        elif number == _ATTRIBUTE:
            attribute = dict(_fields(_bytes(value)))
            if attribute.get(_WORD) == b"is_cpu_op":
                node.on_gpu = not attribute.get(_FLAG, 0)
            elif attribute.get(_WORD) == b"tid":
                node.thread = next((_whole(attribute[one]) for one in _NUMBERS if one in attribute), None)
    return name, node


def _packed(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value)
    return found


def _whole(value: Value) -> int:
    if not isinstance(value, int):
        raise ValueError("bytes where a number belongs")
    return value


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number where bytes belong")
    return value


def _fields(message: bytes) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        size = {_EIGHT: 8, _FOUR: 4}.get(kind, 0)
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif not size:
            raise ValueError("a kind of field that there is not")
        if size > len(message) - at:
            raise ValueError("a field ends after its message")
        yield key >> 3, message[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a number that does not end")
