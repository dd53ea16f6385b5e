"""Files whose bytes go to and from arrays the fastest way that was measured. See README.md."""

from waywiser.storage.file import File

__all__ = ["File"]
