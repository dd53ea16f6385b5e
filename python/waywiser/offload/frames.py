"""Requests and replies between a client and the process that serves it, over their group of two ranks.

A frame is JSON in a message of 1,024 bytes: its length (4 bytes), then the text. Of a longer text the rest follows as a
second message. The group has proved who the ranks are, encrypts between machines, and notices a rank that dies.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy

from waywiser.checked import Node
from waywiser.errors import InputError
from waywiser.group.group import Group

_FRAME = 1024
_HEAD = 4
_LONGEST = 1 << 20
TAG, DATA_TAG = 1, 2
SERVER, CLIENT = 0, 1  # ranks


def send_frame(group: Group, to: int, message: dict[str, Any]) -> None:
    """Sends one frame. Raises as Group.send; InputError if it is longer than 1 MiB."""
    text = json.dumps(message).encode()
    if len(text) > _LONGEST:
        raise InputError(f"a request of {len(text)} bytes: at most {_LONGEST}, without the arrays")
    frame = numpy.zeros(_FRAME, numpy.uint8)
    first = text[: _FRAME - _HEAD]
    frame[:_HEAD] = numpy.frombuffer(struct.pack("<I", len(text)), numpy.uint8)
    frame[_HEAD : _HEAD + len(first)] = numpy.frombuffer(first, numpy.uint8)
    group.send(frame, to, TAG)
    if rest := text[len(first) :]:
        group.send(numpy.frombuffer(rest, numpy.uint8).copy(), to, TAG)


def receive_frame(group: Group, source: int) -> Node:
    """The next frame. Raises as Group.recv; InputError if it is none."""
    frame = group.recv(numpy.zeros(_FRAME, numpy.uint8), source, TAG)
    (length,) = struct.unpack("<I", frame[:_HEAD].tobytes())
    if length > _LONGEST:
        raise InputError(f"a frame of {length} bytes")
    text = frame[_HEAD : _HEAD + length].tobytes()
    if length > len(text):
        text += group.recv(numpy.zeros(length - len(text), numpy.uint8), source, TAG).tobytes()
    try:
        return Node(json.loads(text), "a request")
    except ValueError:
        raise InputError("a frame that is no JSON") from None
