"""SIGTERM ends a command like Ctrl-C: between steps, with one sentence and its own exit status."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM."""


class Stopped(Exception):
    """A run was interrupted. The message says where the run stopped, and how to go on."""

    def __init__(self, text: str, cause: KeyboardInterrupt):
        super().__init__(text)
        self.terminated = isinstance(cause, Terminated)


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Raise an exception in the main thread, like Ctrl-C."""
    raise Terminated


@contextmanager
def ended_by_sigterm() -> Generator[None]:
    """
    Let SIGTERM raise Terminated in the block. Threads other than the main thread leave signals
    alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
