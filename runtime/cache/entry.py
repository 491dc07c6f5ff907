"""
An entry of the disk cache as a file: the key, the names and sizes of parts, the parts, and a digest
of all.

```
timetile cache entry 1
<SHA-256 of what follows>
<key>
kernel.ptx 8123
kernel.cubin 20480

<the parts, one after the other>
```
An entry is loaded only from a plain, unchanged file that belongs to the running user and nobody
else may write.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from timetile.runtime.cache.keys import digest

MAGIC = b"timetile cache entry 1\n"

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

REUSE_SECONDS = 3600
"""Seconds after which another use of an entry is noted."""


def user() -> int | None:
    """The number of the running user; None on systems without user numbers."""
    return None if sys.platform == "win32" else os.geteuid()


def is_trusted(facts: os.stat_result) -> bool:
    """Whether the file belongs to the running user, and nobody else may write the file."""
    me = user()
    return me is None or (facts.st_uid == me and not facts.st_mode & OTHERS_WRITE)


def packed(key: str, files: Mapping[str, bytes]) -> bytes:
    """An entry as bytes."""
    lines = [key, *(f"{name} {len(data)}" for name, data in files.items()), "", ""]
    body = "\n".join(lines).encode() + b"".join(files.values())
    return MAGIC + digest(body).encode() + b"\n" + body


def unpacked(key: str, data: bytes) -> dict[str, bytes] | None:
    """The parts of an entry by name; None unless the entry is whole, and of this key."""
    magic, _, rest = data.partition(b"\n")
    checksum, _, body = rest.partition(b"\n")
    if magic + b"\n" != MAGIC or digest(body).encode() != checksum:
        return None
    # The digest is right: `packed` wrote the body.
    head, _, parts = body.partition(b"\n\n")
    own, *lines = head.decode().split("\n")
    if own != key:
        return None
    files: dict[str, bytes] = {}
    start = 0
    for line in lines:
        name, _, size = line.rpartition(" ")
        files[name] = parts[start : start + int(size)]
        start += int(size)
    return files


def read_entry(path: Path, key: str) -> dict[str, bytes] | None:
    """
    The parts of the entry in a file; None if unusable. Raises OSError if the file cannot be opened,
    FileNotFoundError for a missing file.
    """
    # Refuse symbolic links, and never wait for pipes.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or not is_trusted(facts):
            return None
        try:
            files = unpacked(key, file.read())
        except ValueError:
            return None
        if files is not None and time.time() - facts.st_mtime > REUSE_SECONDS:
            # A read-only file system keeps the old time.
            with suppress(OSError):
                os.utime(path)
    return files
