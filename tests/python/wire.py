"""A wire between two network namespaces that can be read and changed: copies frames between a TAP device in each."""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import sys
from contextlib import suppress
from pathlib import Path

_SET_INTERFACE, _TAP, _NO_HEADER = 0x400454CA, 0x0002, 0x1000
_NEW_NETWORK = 0x40000000
_LONGEST = 1 << 16
_LEAST_CHANGED = 1000  # bytes of a segment, long enough to be in a message's data


def _open_tap(namespace: str, name: str) -> int:
    with open(f"/run/netns/{namespace}", "rb") as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), _NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _SET_INTERFACE, struct.pack("16sH22x", name.encode(), _TAP | _NO_HEADER))
    return device


def _payload(frame: bytes) -> int | None:
    """Where the bytes of a TCP segment begin that is long enough to be changed."""
    if frame[12:14] != b"\x08\x00" or frame[23] != 6:
        return None
    segment = 14 + (frame[14] & 15) * 4
    begin = segment + (frame[segment + 12] >> 4) * 4
    return begin if len(frame) - begin >= _LEAST_CHANGED else None


def _middle(frame: bytes, begin: int) -> bytes:
    at = begin + (len(frame) - begin) // 2
    return frame[at - 50 : at + 50]


def changed(frame: bytes, begin: int) -> bytes:
    """With one bit of the payload flipped, and the checksum that goes with it: TCP takes it for sound."""
    segment = 14 + (frame[14] & 15) * 4
    at = begin + (len(frame) - begin) // 2
    at -= (at - segment) % 2  # the high byte of a word of the checksum
    new = bytearray(frame)
    new[at] ^= 0x10
    (sum_before,) = struct.unpack_from("!H", frame, segment + 16)
    total = (~sum_before & 0xFFFF) + (~(frame[at] << 8) & 0xFFFF) + (new[at] << 8)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", new, segment + 16, ~total & 0xFFFF)
    return bytes(new)


def main() -> None:
    """wire.py A NAME B NAME SEEN CHANGE: writes the traffic to the file SEEN.

    While the file CHANGE is there, every long segment with its bytes in the middle is changed: one alone may get lost,
    and come again unchanged. The file CHANGE.made says that one was.
    """
    a, a_name, b, b_name, seen_file, change_file = sys.argv[1:]
    ends = [_open_tap(a, a_name), _open_tap(b, b_name)]
    change, made = Path(change_file), Path(f"{change_file}.made")
    print("ready", flush=True)
    with open(seen_file, "wb", buffering=0) as seen:
        while True:
            for end in select.select(ends, [], [])[0]:
                frame = os.read(end, _LONGEST)
                seen.write(frame)
                begin = _payload(frame)
                if begin is not None and change.exists() and change.read_bytes() in _middle(frame, begin):
                    frame = changed(frame, begin)
                    made.touch()
                with suppress(BlockingIOError):  # full: TCP sends it again
                    os.write(ends[1 - ends.index(end)], frame)


if __name__ == "__main__":
    main()
