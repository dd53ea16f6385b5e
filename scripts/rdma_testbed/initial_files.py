"""The archive that a kernel unpacks as its first file system (cpio, format newc)."""

import stat


def _entry(number, name, mode, data=b""):
    named = name.encode() + b"\0"
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(named), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + named
    return _padded(head) + _padded(data)


def _padded(data):
    return data + b"\0" * (-len(data) % 4)


def archive(folders, files):
    """`files` is a list of (path, contents); all of them are executable."""
    entries = [(name, stat.S_IFDIR | 0o755, b"") for name in folders]
    entries += [(name, stat.S_IFREG | 0o755, data) for name, data in files]
    parts = [_entry(number, *entry) for number, entry in enumerate(entries, 1)]
    return b"".join([*parts, _entry(0, "TRAILER!!!", 0)])
