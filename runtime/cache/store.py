"""The disk cache: entries by key, without the least recently used if there are too many.

Failures of the cache are no errors: an unreadable entry is a miss, an entry that cannot be written
is not kept, and the user is told once. Entries appear whole or not at all: processes, machines and
`clear` need no locks.
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
"""The share of the limit left after a removal of entries."""

WRITES_SHARE = 64
"""
Entries are counted at a process's first write, and again after each write of this part of the
limit.
"""

DRAFT_SECONDS = 3600
"""Age in seconds from which a draft has no writer any more."""

MALFORMED = (
    ValueError, TypeError, LookupError, AttributeError, RecursionError, ParseError, VerifyException,
)  # fmt: skip
"""Exceptions raised by decoding whole parts with wrong contents."""

Decoded = TypeVar("Decoded")

SAID: set[str] = set()
"""Warnings already given to the user."""

WRITTEN: Counter[Path] = Counter()
"""Bytes written by this process to each folder since the last count of entries."""


def warn_once(text: str) -> None:
    """Tell the user, once in a process."""
    if text not in SAID:
        SAID.add(text)
        LOGGER.warning("%s", text)


def reason(error: OSError | UnusableError) -> str:
    """The reason why a folder cannot be used, to follow the folder's name."""
    if isinstance(error, UnusableError):
        return str(error)
    return f"cannot be used ({error.strerror or error})"


def default_limit() -> int:
    """Most bytes of all entries together: `TIMETILE_CACHE_SIZE`, as 500M or 2G, or 1 GiB."""
    text = os.environ.get("TIMETILE_CACHE_SIZE")
    if not text:
        return DEFAULT_LIMIT
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text.upper())
    if match is None:
        warn_once(
            f"TIMETILE_CACHE_SIZE is {text!r}, which is no size, and the cache keeps 1G; write a "
            "number of bytes, or a number with K, M or G"
        )
        return DEFAULT_LIMIT
    return int(match[1]) * UNITS[match[2]]


@dataclass(frozen=True)
class Cache:
    """A folder of entries, with a file `<key>.entry` each, and the most bytes of all together."""

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
        """The parts of an entry by name; None without a usable entry."""
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
        """
        The result of `decode` for an entry's parts; None if decoding fails, or without a usable
        entry.
        """
        files = self.read(key)
        if files is None:
            return None
        try:
            return decode(files)
        except MALFORMED:
            return None

    def write(self, key: str, files: Mapping[str, bytes]) -> None:
        """Keep an entry, in place of an older one of this key. A failure is a warning, once."""
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
            # Another process deleted the folder.
            opened(self.directory)
            write_whole(self.entry(key), data)

    def warn(self, error: OSError | UnusableError) -> None:
        """Tell the user once about an unusable folder."""
        warn_once(
            f"the cache folder {self.directory} {reason(error)}; kernels are compiled anew, set "
            "TIMETILE_CACHE_DIR to a writable folder, or use no cache"
        )

    # Size.

    def count(self, written: int) -> None:
        """Note written bytes, and remove entries if a count is due."""
        first = self.directory not in WRITTEN
        WRITTEN[self.directory] += written
        if first or WRITTEN[self.directory] > self.limit // WRITES_SHARE:
            WRITTEN[self.directory] = 0
            self.shrink()

    def shrink(self) -> None:
        """
        Remove drafts of dead writers, and the least recently used entries if there are too many.
        """
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

    # Queries of the command line.

    def keys(self) -> list[str]:
        """
        The keys of all entries, damaged ones included. Raises OSError for an unreadable folder.
        """
        return sorted(each.name.partition(".")[0] for each in entries(self.directory))

    def size(self) -> int:
        """The bytes of all entries; OSError where the folder cannot be read."""
        return sum(modified(each)[1] for each in entries(self.directory))

    def damaged(self) -> list[str]:
        """The keys of unusable entries."""
        return [key for key in self.keys() if self.read(key) is None]

    def clear(self) -> int:
        """Remove all entries and nothing else. Returns their number."""
        keys = self.keys()
        for key in keys:
            self.entry(key).unlink(missing_ok=True)
        return len(keys)

    def why_unusable(self) -> str | None:
        """
        The reason why nothing can be kept, to follow the folder's name, after a trial. None if
        entries can be kept.
        """
        key, files = digest(os.urandom(16)), {"probe": b"kept"}
        try:
            self.place(key, packed(key, files))
            found = read_entry(self.entry(key), key)
            self.entry(key).unlink(missing_ok=True)
        except (OSError, UnusableError) as error:
            return reason(error)
        return None if found == files else "does not give back written bytes"

    @property
    def is_foreign(self) -> bool:
        """Whether the folder exists, and is no cache."""
        return self.directory.exists() and not is_marked(self.directory)


def modified(file: os.DirEntry[str]) -> tuple[float, int]:
    """The time of a file's last write or use, and its bytes; zeros for a missing file."""
    try:
        facts = file.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0.0, 0
    return facts.st_mtime, facts.st_size
