"""Work in forked copies of this process, beside the work of the process itself.

Compiling is Python's work, and threads of Python take turns. A copy has all modules and all IR of
the process: nothing is imported, sent or parsed. The copy computes, sends a result back, and ends;
no copy touches the GPU. Beside other threads, a copy may wait for a lock held by no thread: after a
failure or a long silence, the process ends the copy and does the work itself.
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import sys
import time
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar, cast

from timetile.runtime.machine.teams import available_threads, stated_number

T = TypeVar("T")

VARIABLE = "TIMETILE_PROCESSES"
"""The environment's number of processes that compile side by side; by default as many as cores."""

PATIENCE = 60.0
"""Seconds after which a copy is taken to be stuck."""

PIECE = 1 << 20
"""Most bytes read from a copy at once."""

ALONE = ("jax",)
"""Modules with threads lost in a fork."""


def processes() -> int:
    """
    The number of processes that compile side by side, the present process included: as in
    TIMETILE_PROCESSES, or the number of cores; 1 where processes cannot be forked.
    """
    if not hasattr(os, "fork") or sys.platform == "darwin" or any(m in sys.modules for m in ALONE):
        return 1
    return stated_number(VARIABLE) or available_threads()


class Forked(Generic[T]):
    """Work begun in a copy of this process. The copy ends with the object."""

    def __init__(self, work: Callable[[], T]):
        self.work = work
        self.end, other = os.pipe()
        with warnings.catch_warnings():
            # Python warns of forks beside other threads; see the module's documentation.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process = os.fork()
        if not self.process:
            work_in_copy(work, other)
        os.close(other)
        self.began = time.monotonic()
        self.close = weakref.finalize(self, end_copy, self.process, self.end)

    def result(self) -> T:
        """The result: of the copy, or of the process if the copy fails or takes too long."""
        sent = self.sent()
        self.close()
        if sent:
            with suppress(pickle.UnpicklingError, EOFError):
                return cast(T, pickle.loads(sent))
        return self.work()

    def sent(self) -> bytes:
        """The bytes sent by the copy until the end; none after too long a time."""
        parts: list[bytes] = []
        with selectors.DefaultSelector() as ready:
            ready.register(self.end, selectors.EVENT_READ)
            while ready.select(max(0.0, self.began + PATIENCE - time.monotonic())):
                part = os.read(self.end, PIECE)
                if not part:
                    return b"".join(parts)
                parts.append(part)
        return b""


def begin_beside(work: Callable[[], T]) -> Callable[[], T]:
    """
    What gives the result of work: begun in a copy now, or done when asked for, where the process
    compiles alone.
    """
    return work if processes() == 1 else Forked(work).result


def work_in_copy(work: Callable[[], object], end: int) -> None:
    """Do the work of a copy, send the result, and end without the process's exit handlers."""
    status = 1
    try:
        sent = pickle.dumps(work())
        with os.fdopen(end, "wb") as pipe:
            pipe.write(sent)
        status = 0
    finally:
        os._exit(status)


def end_copy(process: int, end: int) -> None:
    """End a copy, running or not, and close the pipe."""
    os.close(end)
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(process, 0)
