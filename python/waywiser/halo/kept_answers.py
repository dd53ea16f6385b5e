"""Answers of `HaloExchange.tune()` in a file, so that the next run with the same shape starts with one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.checked import Node
from waywiser.errors import InputError
from waywiser.files import read_json, write_text_atomically
from waywiser.group.gpus import GpuArray

if TYPE_CHECKING:
    from waywiser.group.group import Group

SCHEMA = ("waywiser.halo_answers", 1)
NAME = "halo.json"  # in a folder of results
VARIANTS = ("whole_field", "per_neighbor", "packed", "direct", "direct_packed")
_MOST_ANSWERS = 1000  # of a file; the oldest ones leave
_RECORD = 2048  # bytes that a rank tells the others


class Answer(NamedTuple):
    """The variant to use, and the median seconds of each variant; None: it was unavailable."""

    variant: str
    times: dict[str, float | None]


def place_of(array: Any) -> str:
    """Where an array lies: "host", "cuda:1", "virtual_gpu:0"."""
    if isinstance(array, GpuArray):
        return f"{array.gpus.backend}:{array.gpu}"
    if not hasattr(array, "__dlpack_device__"):
        return "cuda" if hasattr(array, "__cuda_array_interface__") else "host"
    kind, number = array.__dlpack_device__()
    return "host" if int(kind) in (1, 3) else f"cuda:{number}"  # 3: pinned


class AnswerFile:
    """The answers in one file, as all ranks of a group see it. `shape`: what of this rank's part decides the times.

    Every call is collective, and raises InputError at all ranks if the file of one cannot be read or written.
    """

    def __init__(self, group: Group, file: Path, shape: Mapping[str, Any]) -> None:
        from waywiser import _core

        self._group = group
        self.file = file / NAME if file.is_dir() else file
        self._answers: dict[str, Answer] = {}
        mine = json.dumps({**shape, "machine": _core.discover().fingerprint}, sort_keys=True)
        digest = hashlib.sha256(mine.encode()).hexdigest()
        self._key = hashlib.sha256(json.dumps(self._of_all(digest)).encode()).hexdigest()[:16]

    def known(self) -> Answer | None:
        """The answer for this shape, if the files of all ranks have the same one."""
        refused = ""
        try:
            self._answers = read_answers(self.file) if self.file.exists() else {}
        except InputError as error:
            refused = str(error)
        self._raise_at_all(refused)
        mine = self._answers.get(self._key)
        told = self._of_all(None if mine is None else hashlib.sha256(json.dumps(mine).encode()).hexdigest())
        return mine if all(each == told[0] for each in told) else None

    def keep(self, answer: Answer) -> None:
        """Adds the answer for this shape to the file of each rank; ranks of one machine write the same."""
        self._answers.pop(self._key, None)
        self._answers[self._key] = answer
        newest = dict(list(self._answers.items())[-_MOST_ANSWERS:])
        refused = ""
        try:
            write_text_atomically(self.file, answers_text(newest))
        except InputError as error:
            refused = str(error)
        self._raise_at_all(refused)

    def _raise_at_all(self, refused: str) -> None:
        for rank, why in enumerate(self._of_all(refused[:400])):
            if why:
                raise InputError(f"rank {rank}: {why}")

    def _of_all(self, mine: str | None) -> list[Any]:
        """What each rank says."""
        said = bytearray(_RECORD * self._group.size)
        self._group.all_gather(bytearray(json.dumps(mine).encode().ljust(_RECORD)), out=said)
        return [json.loads(said[first : first + _RECORD]) for first in range(0, len(said), _RECORD)]


def read_answers(file: Path) -> dict[str, Answer]:
    """The answers in a file, by the hash of the shape. Raises InputError."""
    answers = {}
    for node in Node(read_json(file, *SCHEMA), str(file)).items("answers"):
        times = node.child("times")
        named = {name: times.number(name, above_zero=True) if times.has(name) else None for name in VARIANTS}
        variant = node.word("variant", VARIANTS)
        if named[variant] is None:
            raise node.refuse(f"the times lack the variant {variant}")
        answers[node.text("shape")] = Answer(variant, named)
    return answers


def answers_text(answers: Mapping[str, Answer]) -> str:
    """The file of `answers`, by the hash of the shape."""
    lines = [{"shape": key, "variant": each.variant, "times": each.times} for key, each in answers.items()]
    value = {"schema": SCHEMA[0], "version": SCHEMA[1], "answers": lines}
    return json.dumps(value, indent=1) + "\n"


def shape_of(partition: Sequence[Any], fields: Sequence[tuple[Any, int, bool]]) -> dict[str, Any]:
    """What of a rank's part decides the times: the cut, and each field's type, components and place."""
    described = [
        [
            str(getattr(array, "dtype", memoryview(array).format if place_of(array) == "host" else "")),
            *form,
            place_of(array),
        ]
        for array, *form in fields
    ]
    return {"partition": list(partition), "fields": described}
