"""
Failures on the command line: one sentence and an exit status for an exception, never a traceback.
"""

from __future__ import annotations

import traceback
from types import TracebackType

from xdsl.utils.exceptions import PassFailedException

from timetile.runtime.cli.interrupts import Stopped, Terminated
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.executors.homes import PlaneError
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.kernels.assembler import AssemblerError
from timetile.runtime.ranks.peers import RankError

WRONG_USE, WRONG_KERNEL, INTERRUPTED, TERMINATED = 2, 1, 130, 143
"""Exit statuses: a mistake of the user, a wrong kernel, Ctrl-C, SIGTERM."""


def sentence(error: BaseException) -> tuple[str, int]:
    """The sentence for an exception, and the exit status."""
    match error:
        case Stopped():
            return str(error), TERMINATED if error.terminated else INTERRUPTED
        case Terminated():
            return "terminated", TERMINATED
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case OSError():
            what = error.strerror or str(error)
            if error.filename is None:
                return f"cannot read or write: {what}", WRONG_USE
            return f"cannot open {error.filename}: {what}", WRONG_USE
        case UsageError() | PassFailedException() | RankError():
            return str(error), WRONG_USE
        case MemoryError():
            what = str(error).rstrip(".") or "it takes more than this machine has"
            return f"out of memory: {what}; give the program smaller fields", WRONG_USE
        case RecursionError():
            return (
                "the program is nested too deeply for Python's stack; write fewer loops inside "
                "each other",
                WRONG_USE,
            )
        case PlaneError() | SimtError() | AssemblerError():
            return f"a kernel is wrong, please report it: {error}", WRONG_KERNEL
        case _:
            text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
            return (
                f"an internal error, please report it: {text} ({raised_at(error.__traceback__)}); "
                "--verbose shows "
                "the traceback",
                WRONG_KERNEL,
            )


def raised_at(trace: TracebackType | None) -> str:
    """The file and line where an exception was raised."""
    frames = traceback.extract_tb(trace)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "at an unknown place"
