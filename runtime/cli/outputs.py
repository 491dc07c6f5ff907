"""Output files of the command line, written beside their place first: an old file is replaced as a
whole or kept.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from timetile.runtime.cli.usage import UsageError


def is_in_place(path: Path) -> bool:
    """
    Whether the path itself is written: no plain file (a device, a pipe), or a file in a folder
    closed to new files.
    """
    if not path.exists():
        return False
    return not path.is_file() or not os.access(path.resolve().parent, os.W_OK)


@contextmanager
def written(path: Path) -> Generator[BinaryIO]:
    """
    The file to write to. An old file is replaced after all is written, and kept after a failure:
    OSError with the path.
    """
    target = path.resolve()
    draft = target if is_in_place(path) else target.parent / f".timetile-{secrets.token_hex(8)}"
    try:
        with draft.open("wb") as file:
            yield file
        if draft is not target:
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        if draft is not target:
            draft.unlink(missing_ok=True)


def check_output(path: Path, size: int = 0) -> None:
    """
    Raise OSError unless a file can be written, UsageError for a disk without room for `size` bytes.
    """
    if path.is_dir() or is_in_place(path):
        path.open("ab").close()
        return
    folder = path.resolve().parent
    probe = folder / f".timetile-{secrets.token_hex(8)}"
    try:
        probe.open("wb").close()
        probe.unlink()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    disk = shutil.disk_usage(folder)
    # Some file systems report a total of 0.
    if disk.total and size > disk.free:
        raise UsageError(
            f"{path} takes {size} bytes, and its disk has {disk.free}; free some, or write "
            "elsewhere"
        )
