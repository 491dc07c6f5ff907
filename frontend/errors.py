"""Errors of a step function: file and line, the underlined expression, and a correction."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType

import numpy as np

from timetile.passes.diagnostics import CompileError

OWN = Path(__file__).parent

Positions = tuple[tuple[int | None, int | None, int | None, int | None], ...]
"""For each instruction: first line, last line, first column, last column."""


@dataclass(frozen=True)
class SourcePlace:
    """An expression in a file: lines from 1, and columns from 0; -1 if unknown."""

    file: str
    line: int
    end_line: int = -1
    column: int = -1
    end_column: int = -1

    def underlined(self) -> str:
        """The line of the expression with `^` below; empty without the source."""
        text = linecache.getline(self.file, self.line).rstrip("\n")
        if not text:
            return ""
        margin = len(text) - len(text.lstrip())
        shown = f"\n    {text.strip()}"
        if self.column < 0:
            return shown
        start = columns(text, self.column)
        end = columns(text, self.end_column) if self.end_line == self.line else len(text)
        return f"{shown}\n    {' ' * (start - margin)}{'^' * max(end - start, 1)}"


def columns(text: str, count: int) -> int:
    """
    The number of characters in the first `count` bytes of a line: Python counts columns of code in
    bytes of UTF-8.
    """
    return len(text.encode()[:count].decode(errors="ignore"))


class StencilError(CompileError):
    """
    A step function is wrong. `reason` is one sentence with a correction; `file` and `line` say the
    place. The message adds the line of source with the expression underlined.
    """

    def __init__(self, reason: str, place: SourcePlace):
        super().__init__(
            f"{place.file}:{place.line}: {reason}{place.underlined()}",
            reason=reason,
            file=place.file,
            line=place.line,
        )
        self.place = place

    def __reduce__(self) -> tuple[type[StencilError], tuple[str, SourcePlace], dict[str, object]]:
        """The error in another process, where the line of source may be unknown."""
        return type(self), (self.reason, self.place), {"args": self.args}


@dataclass(frozen=True)
class SameCode:
    """Code compared by identity: Python compares and hashes its code by content, slowly."""

    code: CodeType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameCode) and self.code is other.code

    def __hash__(self) -> int:
        return id(self.code)


@lru_cache(maxsize=1)
def positions(same: SameCode) -> Positions:
    """
    The lines and columns of a function's instructions. Those of the latest function are kept, since
    tracing asks for each of its operations.
    """
    return tuple(same.code.co_positions())


def place_in(code: CodeType, instruction: int) -> SourcePlace:
    """The expression of an instruction, given by its offset in bytes."""
    found = positions(SameCode(code))
    number = max(instruction, 0) // 2
    nowhere = (None, None, None, None)
    first, last, start, end = found[number] if number < len(found) else nowhere
    known = first or code.co_firstlineno
    if last is None or start is None or end is None:
        return SourcePlace(code.co_filename, known)
    return SourcePlace(code.co_filename, known, last, start, end)


@lru_cache
def is_own_file(name: str) -> bool:
    """Whether a file of code belongs to timetile's frontend."""
    return Path(name).parent == OWN


@lru_cache
def is_numpy_file(name: str) -> bool:
    """Whether a file of code belongs to NumPy, whose functions steps call."""
    return Path(np.__file__).parent in Path(name).parents


def is_own(frame: FrameType) -> bool:
    """Whether the frame belongs to timetile's frontend."""
    return is_own_file(frame.f_code.co_filename)


def frames() -> Iterator[FrameType]:
    """The frames of the caller, innermost first."""
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def user_frame() -> FrameType:
    """The innermost frame of the user's code."""
    return next(frame for frame in frames() if not is_own(frame))


def caller_locals() -> Mapping[str, object]:
    """The local names of the user's code that called timetile."""
    return user_frame().f_locals


def current_place() -> SourcePlace:
    """The evaluated expression of the user's code."""
    frame = user_frame()
    return place_in(frame.f_code, frame.f_lasti)


def error(reason: str) -> StencilError:
    """An error at the evaluated expression of the user's code."""
    return StencilError(reason, current_place())


def place_of_traceback(traceback: TracebackType | None) -> SourcePlace | None:
    """
    The expression of the user's code behind an exception, of the caller for an exception in NumPy;
    None for an exception in other code.
    """
    found: TracebackType | None = None
    last = traceback
    while last is not None:
        if not is_numpy_file(last.tb_frame.f_code.co_filename):
            found = last
        last = last.tb_next
    if found is None or is_own(found.tb_frame):
        return None
    return place_in(found.tb_frame.f_code, found.tb_lasti)


def explained(problem: Exception, advice: str) -> StencilError | None:
    """
    An error of Python itself, at the user's expression and with a correction; None for an error in
    other code.
    """
    at = place_of_traceback(problem.__traceback__)
    # Python 3.13 appends advice on making attributes; a step makes no attributes.
    said = str(problem).removesuffix(" and no __dict__ for setting new attributes")
    return None if at is None else StencilError(f"{said}; {advice}", at)


def place_of_function(code: CodeType) -> SourcePlace:
    """The first line of a function."""
    return SourcePlace(code.co_filename, code.co_firstlineno)
