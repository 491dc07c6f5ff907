"""Keys of the disk cache: digests of everything behind an entry, without paths or times."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import timetile


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def key_of(*parts: object) -> str:
    """The key of an entry: a digest of the parts as text."""
    return digest(json.dumps([str(part) for part in parts]).encode())


@cache
def installed_version(package: str) -> str:
    """
    The version of an installed package. Raises PackageNotFoundError for a package that is not
    installed. Its folder has the version in its name: importlib.metadata takes 10 times as long.
    """
    begin, end = f"{package.replace('-', '_').lower()}-", ".dist-info"
    names = (name for folder in sys.path for name in entries_of_folder(Path(folder)))
    found = (name for name in names if name.lower().startswith(begin) and name.endswith(end))
    name = next(found, None)
    return distribution(package).version if name is None else name[len(begin) : -len(end)]


@cache
def entries_of_folder(folder: Path) -> list[str]:
    """The names in a folder; none in a folder that cannot be read, or in an archive."""
    try:
        return [each.name for each in folder.iterdir()]
    except OSError:
        return []


FOUND: list[str] = []
"""The key of the compiler's own files, once known in this process."""


def sources_key() -> str:
    """
    The key of the compiler's own files, by names below the package and contents: equal for equal
    sources in any place, different for a changed source of one version.
    """
    if not FOUND:
        files = source_files()
        FOUND.append(key_of(*(part for name in files for part in (name, digest_of_source(name)))))
    return FOUND[0]


def digest_of_source(name: str) -> str:
    """The digest of a file of the compiler."""
    return digest((compiler_folder() / name).read_bytes())


def compiler_folder() -> Path:
    """The folder of the compiler's own files."""
    return Path(timetile.__file__).parent


def source_files() -> dict[str, os.stat_result]:
    """What the system knows about the compiler's own files, by names below the package."""
    found: dict[str, os.stat_result] = {}
    folders = [(str(compiler_folder()), "")]
    for folder, inside in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found[inside + entry.name] = entry.stat()
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append((entry.path, f"{inside}{entry.name}/"))
    return dict(sorted(found.items()))
