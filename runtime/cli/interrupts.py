"""SIGTERM ends a command as Ctrl-C does: between its steps, with a sentence and an exit status of its own."""

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
    """A run was interrupted: the message says where it stopped, and how it goes on."""

    def __init__(self, text: str, cause: KeyboardInterrupt):
        super().__init__(text)
        self.terminated = isinstance(cause, Terminated)


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Raise in the main thread what Ctrl-C raises."""
    raise Terminated


@contextmanager
def ended_by_sigterm() -> Generator[None]:
    """Meanwhile, SIGTERM raises Terminated. Other threads than the main one leave signals as they are."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
