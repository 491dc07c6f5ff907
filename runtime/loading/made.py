"""Programs made from something shorter than their text, such as a traced step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True)
class MadeProgram:
    """A program that is made only if the cache holds nothing made from it before."""

    key: str
    """What the program is made from: equal for equal programs alone."""
    make: Callable[[], ModuleOp]
    """Makes the program, verified, for the caller alone."""
