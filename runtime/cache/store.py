"""The disk cache: entries by key, the least recently used out where they are too many.

Nothing that goes wrong with it is an error: what cannot be read is a miss, what cannot be written is not kept, and the
user is told once. Entries appear whole or not at all, so that processes, machines and `clear` need no locks.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from xdsl.utils.exceptions import ParseError, VerifyException

from timetile.passes.diagnostics import LOGGER
from timetile.runtime.cache.entry import packed, read_entry
from timetile.runtime.cache.folder import (
    UnusableError,
    default_directory,
    drafts,
    entries,
    is_marked,
    opened,
    write_whole,
)
from timetile.runtime.cache.keys import digest

DEFAULT_LIMIT = 1 << 30

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

KEPT_SHARE = 0.9
"""Of the limit, that is left when entries are removed."""

WRITES_SHARE = 64
"""Entries are counted at a process's first write, and after each such part of the limit that it has written."""

DRAFT_SECONDS = 3600
"""A draft that is older has no writer any more."""

MALFORMED = (
    ValueError, TypeError, LookupError, AttributeError, RecursionError, ParseError, VerifyException,
)  # fmt: skip
"""What decoding raises where an entry's parts are whole, and not what they should be."""

Decoded = TypeVar("Decoded")

SAID: set[str] = set()
"""What the user was told already."""

WRITTEN: Counter[Path] = Counter()
"""Bytes that this process has written to each folder since it counted entries."""


def warn_once(text: str) -> None:
    """Tell the user, once in a process."""
    if text not in SAID:
        SAID.add(text)
        LOGGER.warning("%s", text)


def reason(error: OSError | UnusableError) -> str:
    """Why a folder cannot be used, as what follows its name."""
    if isinstance(error, UnusableError):
        return str(error)
    return f"cannot be used ({error.strerror or error})"


def default_limit() -> int:
    """Bytes that all entries together may have: `TIMETILE_CACHE_SIZE`, as 500M or 2G, or 1 GiB."""
    text = os.environ.get("TIMETILE_CACHE_SIZE")
    if not text:
        return DEFAULT_LIMIT
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text.upper())
    if match is None:
        warn_once(
            f"TIMETILE_CACHE_SIZE is {text!r}, which is no size, so that the cache keeps 1G; "
            "write a number of bytes, or one with K, M or G"
        )
        return DEFAULT_LIMIT
    return int(match[1]) * UNITS[match[2]]


@dataclass(frozen=True)
class Cache:
    """A folder of entries, a file `<key>.entry` each, and the bytes that they may have together."""

    directory: Path
    limit: int = DEFAULT_LIMIT

    @staticmethod
    def default() -> Cache:
        """The user's own."""
        return Cache(default_directory(), default_limit())

    def entry(self, key: str) -> Path:
        """The file of an entry."""
        return self.directory / f"{key}.entry"

    def read(self, key: str) -> dict[str, bytes] | None:
        """The parts of an entry by name; None where there is none that can be used."""
        try:
            return read_entry(self.entry(key), key)
        except FileNotFoundError:
            return None
        except OSError as error:
            if not self.entry(key).is_symlink():
                self.warn(error)
            return None

    def decoded(
        self, key: str, decode: Callable[[dict[str, bytes]], Decoded | None]
    ) -> Decoded | None:
        """What `decode` makes of an entry's parts; None where it cannot, or there is none that can be used."""
        files = self.read(key)
        if files is None:
            return None
        try:
            return decode(files)
        except MALFORMED:
            return None

    def write(self, key: str, files: Mapping[str, bytes]) -> None:
        """Keep an entry, in place of the one of this key; a warning, once, where that is not possible."""
        data = packed(key, files)
        if len(data) > self.limit:
            return
        try:
            self.place(key, data)
            self.count(len(data))
        except (OSError, UnusableError) as error:
            self.warn(error)

    def place(self, key: str, data: bytes) -> None:
        """Write an entry's file."""
        opened(self.directory)
        try:
            write_whole(self.entry(key), data)
        except FileNotFoundError:
            # Somebody has deleted the folder meanwhile.
            opened(self.directory)
            write_whole(self.entry(key), data)

    def warn(self, error: OSError | UnusableError) -> None:
        """Tell the user that the folder cannot be used."""
        warn_once(
            f"the cache folder {self.directory} {reason(error)}; kernels are compiled anew, set TIMETILE_CACHE_DIR to "
            "a folder that can be written, or use no cache"
        )

    # Size.

    def count(self, written: int) -> None:
        """Note what was written, and remove entries if it is time to look."""
        first = self.directory not in WRITTEN
        WRITTEN[self.directory] += written
        if first or WRITTEN[self.directory] > self.limit // WRITES_SHARE:
            WRITTEN[self.directory] = 0
            self.shrink()

    def shrink(self) -> None:
        """Remove what writers that died have left, and the entries that were used least recently, if need be."""
        for draft in drafts(self.directory):
            if time.time() - modified(draft)[0] > DRAFT_SECONDS:
                Path(draft.path).unlink(missing_ok=True)
        found = sorted((*modified(each), each.name) for each in entries(self.directory))
        total = sum(size for _, size, _ in found)
        if total <= self.limit:
            return
        for _, size, name in found:
            if total <= KEPT_SHARE * self.limit:
                return
            (self.directory / name).unlink(missing_ok=True)
            total -= size

    # For the command line.

    def keys(self) -> list[str]:
        """The keys of all entries, damaged ones too; OSError where the folder cannot be read."""
        return sorted(each.name.partition(".")[0] for each in entries(self.directory))

    def size(self) -> int:
        """The bytes of all entries; OSError where the folder cannot be read."""
        return sum(modified(each)[1] for each in entries(self.directory))

    def damaged(self) -> list[str]:
        """The keys of the entries that cannot be used."""
        return [key for key in self.keys() if self.read(key) is None]

    def clear(self) -> int:
        """Remove all entries and nothing else; how many there were."""
        keys = self.keys()
        for key in keys:
            self.entry(key).unlink(missing_ok=True)
        return len(keys)

    def why_unusable(self) -> str | None:
        """Why nothing can be kept, as what follows the folder's name; None where it can, which is tried."""
        key, files = digest(os.urandom(16)), {"probe": b"kept"}
        try:
            self.place(key, packed(key, files))
            found = read_entry(self.entry(key), key)
            self.entry(key).unlink(missing_ok=True)
        except (OSError, UnusableError) as error:
            return reason(error)
        return None if found == files else "does not give back what was written"

    @property
    def is_foreign(self) -> bool:
        """There is such a folder, and it is no cache."""
        return self.directory.exists() and not is_marked(self.directory)


def modified(file: os.DirEntry[str]) -> tuple[float, int]:
    """When a file was written or used last, and its bytes; zeros where it is gone."""
    try:
        facts = file.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0.0, 0
    return facts.st_mtime, facts.st_size
