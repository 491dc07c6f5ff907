"""The disk cache of compiled kernels: content-addressed files, written atomically, never pickled.

An entry is a folder of its own with a manifest of its files' digests; one that is damaged counts as
absent, and is rebuilt. `TIMETILE_CACHE_DIR` moves the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

import platformdirs

import timetile

MANIFEST = "manifest.json"


def default_directory() -> Path:
    """Where the cache lies."""
    chosen = os.environ.get("TIMETILE_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("timetile"))


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def key_of(*parts: object) -> str:
    """The key of an entry: a digest of everything that it depends on."""
    return digest(json.dumps([str(part) for part in parts]).encode())


@cache
def sources_key() -> str:
    """
    The key of the compiler's own files, by their sizes and times: what another state of the same version made is not
    taken for its own.
    """
    package = Path(timetile.__file__).parent
    files: list[object] = []
    for folder, _, names in sorted(os.walk(package, followlinks=True)):
        for name in sorted(names):
            if name.endswith(".py"):
                facts = (Path(folder) / name).stat()
                files += [folder, name, facts.st_size, facts.st_mtime_ns]
    return key_of(*files)


@dataclass(frozen=True)
class Cache:
    """A folder of entries, `<first two digits>/<key>/` each."""

    directory: Path

    @staticmethod
    def default() -> Cache:
        return Cache(default_directory())

    def entry(self, key: str) -> Path:
        return self.directory / key[:2] / key

    def read(self, key: str) -> dict[str, bytes] | None:
        """The files of an entry by name; None where it is absent or damaged."""
        folder = self.entry(key)
        try:
            manifest = json.loads((folder / MANIFEST).read_text())
            if not isinstance(manifest, dict) or not manifest:
                return None
            digests = cast(dict[str, str], manifest)
            files = {name: (folder / name).read_bytes() for name in digests}
        except (OSError, ValueError):
            return None
        if any(digest(files[name]) != expected for name, expected in digests.items()):
            return None
        return files

    def write(self, key: str, files: Mapping[str, bytes]) -> None:
        """Write an entry: into a folder beside it first, so that no reader sees half of it."""
        folder = self.entry(key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".draft-"))
        for name, data in files.items():
            (draft / name).write_bytes(data)
        manifest = {name: digest(data) for name, data in files.items()}
        (draft / MANIFEST).write_text(json.dumps(manifest))
        if folder.exists():
            # Damaged, or written by somebody else meanwhile: either way ours is as good.
            shutil.rmtree(folder, ignore_errors=True)
        try:
            draft.rename(folder)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)

    def keys(self) -> list[str]:
        """All entries, damaged ones too; drafts of writers that died are none."""
        folders = (path for path in self.directory.glob("??/*") if path.is_dir())
        return sorted(path.name for path in folders if not path.name.startswith("."))

    def damaged(self) -> list[str]:
        """The entries that cannot be read."""
        return [key for key in self.keys() if self.read(key) is None]

    def clear(self) -> int:
        """Remove all entries; returns how many there were."""
        count = len(self.keys())
        for folder in self.directory.glob("??"):
            shutil.rmtree(folder)
        return count
