"""The folder of the disk cache: place and marks.

The folder named by `TIMETILE_CACHE_DIR` may hold other things. The cache has a folder below, one
for each user, marked as in https://bford.info/cachedir/. An unmarked folder with other contents is
left alone.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from timetile.runtime.cache.entry import is_trusted, user

TAG = "CACHEDIR.TAG"

SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55\n"

MARK = SIGNATURE + b"# The disk cache of timetile. Whoever deletes it loses nothing but time.\n"

ENTRY = re.compile(r"[0-9a-f]{64}\.entry")

DRAFT = re.compile(r"\.draft-[0-9a-f]{16}")
"""A file being written, or left by a writer that died."""

ENTRY_MODE = 0o644
"""Before the user's mask."""


class UnusableError(Exception):
    """The folder cannot be used. The message is the reason, to follow the folder's name."""


def default_directory() -> Path:
    """The user's own folder, below `TIMETILE_CACHE_DIR` or where the system keeps caches."""
    chosen = os.environ.get("TIMETILE_CACHE_DIR")
    base = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("timetile"))
    if not chosen and not base.is_absolute():
        # The user has no home folder.
        base = Path(tempfile.gettempdir()) / "timetile"
    me = user()
    return base / ("kernels" if me is None else f"kernels-{me}")


def is_marked(directory: Path) -> bool:
    """The folder is a cache of timetile's."""
    path = directory / TAG
    return path.is_file() and path.read_bytes() == MARK


def check_owner(directory: Path) -> None:
    """UnusableError unless the folder is one, and the user's own."""
    facts = directory.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        raise UnusableError("is no folder")
    if (me := user()) is not None and facts.st_uid != me:
        raise UnusableError(f"belongs to user {facts.st_uid}, not to the running user {me}")


def opened(directory: Path) -> None:
    """
    Make and mark the folder, unless done before. Raises UnusableError or OSError for an unusable
    folder.
    """
    directory.mkdir(parents=True, exist_ok=True)
    check_owner(directory)
    if is_marked(directory):
        return
    for name in (path.name for path in directory.iterdir()):
        if name != TAG and not ENTRY.fullmatch(name) and not DRAFT.fullmatch(name):
            raise UnusableError(f"is no cache of timetile, as it holds {name!r}")
    write_whole(directory / TAG, MARK)


def write_whole(path: Path, data: bytes) -> None:
    """
    Write a file beside its place first: no reader sees half of the file, even on another machine.
    """
    draft = path.parent / f".draft-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(draft, flags, ENTRY_MODE), "wb") as file:
            file.write(data)
            if not is_trusted(os.fstat(file.fileno())):
                raise UnusableError(
                    "is on a file system where others may write what this user makes"
                )
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def entries(directory: Path) -> Iterator[os.DirEntry[str]]:
    """The files of the folder with names of entries; none in an unmarked folder."""
    if not is_marked(directory):
        return
    with os.scandir(directory) as found:
        yield from (each for each in found if ENTRY.fullmatch(each.name))


def drafts(directory: Path) -> Iterator[os.DirEntry[str]]:
    """The files of the folder with names of drafts; none in an unmarked folder."""
    if not is_marked(directory):
        return
    with os.scandir(directory) as found:
        yield from (each for each in found if DRAFT.fullmatch(each.name))
