"""What the compiler says to its user: remarks (left as it is, and why) and refusals (cannot be done).

Both name the operation, its function, and file and line where they are known.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, cast

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import PassFailedException

LOGGER = logging.getLogger("timetile")


class CompileError(PassFailedException):
    """The program cannot be compiled; the message is one sentence, a fact and a way out."""


def where(op: Operation) -> str:
    """`stencil.apply in @step (heat.mlir:12)`."""
    text = op.name
    parent: Operation | None = op
    while parent is not None:
        trait = parent.get_trait(SymbolOpInterface)
        symbol = trait.get_sym_attr_name(parent) if trait is not None else None
        if symbol is not None:
            text += f" in @{symbol.data}"
            break
        parent = parent.parent_op()
    if isinstance(op.location, FileLineColLoc):
        text += f" ({op.location.filename.data}:{op.location.line.data})"
    return text


REMARKS: ContextVar[list[str] | None] = ContextVar("REMARKS", default=None)


@contextmanager
def collected_remarks() -> Generator[list[str]]:
    """The remarks that are made meanwhile, also known to whoever collects them around this."""
    remarks: list[str] = []
    around = REMARKS.get()
    token = REMARKS.set(remarks)
    try:
        yield remarks
    finally:
        REMARKS.reset(token)
        if around is not None:
            around += remarks


def remark(op: Operation, text: str) -> None:
    """Say why an operation is left as it is."""
    remark_at(where(op), text)


def remark_at(place: str, text: str) -> None:
    """Say something about an operation that may be gone; `where` gives its place while it is there."""
    LOGGER.warning("%s: %s", place, text)
    if (remarks := REMARKS.get()) is not None:
        remarks.append(f"{place}: {text}")


def check_options(item: ModulePass, **least: int) -> None:
    """CompileError where one of a pass's options, or one of several numbers of it, is less than it may be."""
    for name, lowest in least.items():
        given: Any = getattr(item, name)
        values = cast(tuple[Any, ...], given if isinstance(given, tuple) else (given,))
        for value in values:
            if isinstance(value, int | float) and value < lowest:
                option = name.replace("_", "-")
                raise CompileError(f"{item.name}: {option} is at least {lowest}, got {value}")


def refuse(op: Operation, text: str) -> NoReturn:
    """Raise CompileError about an operation."""
    raise CompileError(f"{where(op)}: {text}")
