"""Sends one packet many times out of an interface: a program of its own, so that it can run in another namespace.

It imports nothing of the package. Arguments: interface, how many, the packet in hexadecimal digits.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence

_SECONDS = 10.0


def main(words: Sequence[str]) -> int:
    """Returns the exit code; the reason of a failure goes to standard error."""
    interface, count, packet = words[0], int(words[1]), bytes.fromhex(words[2])
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as door:
            door.settimeout(_SECONDS)
            door.bind((interface, 0))
            for _ in range(count):
                door.send(packet)
    except PermissionError:
        print("needs root (CAP_NET_RAW)", file=sys.stderr)
        return 1
    except OSError as error:
        print(error.strerror or error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
