"""Keys of the disk cache: digests of everything behind an entry, without paths or times."""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path

import timetile


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def key_of(*parts: object) -> str:
    """The key of an entry: a digest of the parts as text."""
    return digest(json.dumps([str(part) for part in parts]).encode())


@cache
def sources_key() -> str:
    """
    The key of the compiler's own files, by names below the package and contents: equal for equal
    sources in any place, different for a changed source of one version.
    """
    package = Path(timetile.__file__).parent
    files: list[object] = []
    for folder, _, names in sorted(os.walk(package, followlinks=True)):
        inside = Path(folder)
        place = inside.relative_to(package).as_posix()
        for name in sorted(names):
            if name.endswith(".py"):
                files += [f"{place}/{name}", digest((inside / name).read_bytes())]
    return key_of(*files)
