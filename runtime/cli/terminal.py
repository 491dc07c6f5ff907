"""Output of the command line: the answer on stdout, messages and progress on stderr."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from io import TextIOWrapper

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from timetile.passes.diagnostics import LOGGER

STDERR = Console(stderr=True)
WIDE = 140
"""Columns of an answer without a terminal."""

SECONDS_BETWEEN_LINES = 5.0
"""Seconds between lines of progress in plain text."""

Advance = Callable[[int, int], None]
"""A callback with the finished amount and the whole amount."""


def say(text: str) -> None:
    """Print a line of the answer."""
    print(text)


def complain(message: str) -> None:
    """Print a failure on stderr; nothing for a closed stderr."""
    with suppress(OSError):
        print(f"timetile: {message}", file=sys.stderr)


def tolerate_narrow_terminals() -> None:
    """Write characters missing in the terminal's encoding as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush_answer() -> None:
    """Write the buffered answer. Raises OSError on failure; a closed stdout is none."""
    stdout: object = sys.stdout
    if isinstance(stdout, TextIOWrapper):
        stdout.flush()


def discard_answer() -> None:
    """Discard the buffered answer, to let Python end without a failure."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def discard_answer_that_fails() -> None:
    """Write the buffered answer, or discard the answer on failure."""
    try:
        flush_answer()
    except OSError:
        discard_answer()


def answer_console() -> Console:
    """A console for tables: as wide as the terminal, or wide where stdout is a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


class PlainProgress:
    """Progress as lines of plain text, for files and pipes: at most one in some seconds."""

    def __init__(self, text: str):
        self.text, self.said = text, time.monotonic()

    def __call__(self, done: int, everything: int) -> None:
        now = time.monotonic()
        if now - self.said >= SECONDS_BETWEEN_LINES:
            self.said = now
            print(f"{self.text}: {done} of {everything}", file=sys.stderr, flush=True)


@contextmanager
def progress(
    text: str, total: int | None = None, *, shows: bool | None = None
) -> Generator[Advance]:
    """
    A progress bar during long work, if stderr is a terminal. With `shows`, lines of plain text
    without a terminal; with False, nothing.
    """
    if shows and not STDERR.is_terminal:
        yield PlainProgress(text)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    hidden = not STDERR.is_terminal or shows is False
    with Progress(*columns, console=STDERR, transient=True, disable=hidden) as bar:
        task = bar.add_task(text, total=total)
        yield lambda done, everything: bar.update(task, completed=done, total=everything)


class Log(logging.Handler):
    """Prints timetile's messages to stderr, above a progress bar, and keeps the remarks."""

    def __init__(self) -> None:
        super().__init__()
        self.remarks: dict[str, None] = {}
        self.prints_remarks = True

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record on stderr, each remark once."""
        text = record.getMessage()
        if record.levelno >= logging.WARNING:
            if text in self.remarks:
                return
            self.remarks[text] = None
            if not self.prints_remarks:
                return
        self.show(record.levelname.lower(), text)

    def show(self, level: str, text: str) -> None:
        """Print a message to stderr, even if given before."""
        STDERR.print(f"{level}: {text}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def logging_to_stderr(*, verbose: bool) -> Generator[Log]:
    """Show timetile's remarks on stderr, and all of its messages if `verbose`."""
    log, level = Log(), LOGGER.level
    LOGGER.addHandler(log)
    LOGGER.setLevel(logging.DEBUG if verbose else logging.WARNING)
    try:
        yield log
    finally:
        LOGGER.removeHandler(log)
        LOGGER.setLevel(level)
