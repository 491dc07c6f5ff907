"""Messages of the compiler: remarks (something stays unchanged, and why) and refusals (something
cannot be done).

Both name the operation, its function, and file and line if known.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass, PassPipeline
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import PassFailedException, VerifyException

LOGGER = logging.getLogger("timetile")


class CompileError(PassFailedException):
    """
    The program cannot be compiled. The message is one sentence: a fact and a way out.

    `reason` is the sentence without the place. `operation` is the name of the operation at fault
    (`scf.for`); `file` and `line` say the place. Each is None if unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        operation: str | None = None,
        file: str | None = None,
        line: int | None = None,
    ):
        super().__init__(message)
        self.reason = message if reason is None else reason
        self.operation, self.file, self.line = operation, file, line


@dataclass(frozen=True)
class OperationPlace:
    """
    The place of an operation, valid after the operation is gone: as text `stencil.apply in @step
    (heat.mlir:12)`.
    """

    operation: str
    symbol: str | None
    file: str | None
    line: int | None

    def __str__(self) -> str:
        text = self.operation if self.symbol is None else f"{self.operation} in @{self.symbol}"
        return text if self.file is None else f"{text} ({self.file}:{self.line})"


@dataclass(frozen=True)
class Remark:
    """An operation left unchanged, and the reason."""

    place: OperationPlace
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"

    def error(self) -> CompileError:
        """The remark as an error."""
        where = self.place
        return CompileError(
            str(self),
            reason=self.reason,
            operation=where.operation,
            file=where.file,
            line=where.line,
        )


def place_of(op: Operation) -> OperationPlace:
    """Where an operation stands."""
    symbol: str | None = None
    parent: Operation | None = op
    while parent is not None and symbol is None:
        trait = parent.get_trait(SymbolOpInterface)
        name = trait.get_sym_attr_name(parent) if trait is not None else None
        symbol = None if name is None else name.data
        parent = parent.parent_op()
    if not isinstance(op.location, FileLineColLoc):
        return OperationPlace(op.name, symbol, None, None)
    return OperationPlace(op.name, symbol, op.location.filename.data, op.location.line.data)


def where(op: Operation) -> str:
    """`stencil.apply in @step (heat.mlir:12)`."""
    return str(place_of(op))


REMARKS: ContextVar[list[Remark] | None] = ContextVar("REMARKS", default=None)


UNTOLD: ContextVar[bool] = ContextVar("UNTOLD", default=False)
"""Whether remarks are collected without a word to the user."""


@contextmanager
def collected_remarks(untold: bool = False) -> Generator[list[Remark]]:
    """
    Collect the remarks made in the block. An outer collector gets them, too. With `untold`, the
    caller tells the user.
    """
    remarks: list[Remark] = []
    around = REMARKS.get()
    token, told = REMARKS.set(remarks), UNTOLD.set(untold or UNTOLD.get())
    try:
        yield remarks
    finally:
        REMARKS.reset(token)
        UNTOLD.reset(told)
        if around is not None:
            around += remarks


MUTED: ContextVar[bool] = ContextVar("MUTED", default=False)


@contextmanager
def muted_remarks() -> Generator[None]:
    """Drop the remarks made in the block, about a trial."""
    token = MUTED.set(True)
    try:
        yield
    finally:
        MUTED.reset(token)


def remark(op: Operation, text: str) -> None:
    """Say why an operation stays unchanged."""
    remark_at(place_of(op), text)


def remark_at(place: OperationPlace, text: str) -> None:
    """
    Say something about an operation that may be gone. `place_of` gives the place of an existing
    operation.
    """
    if MUTED.get():
        return
    if not UNTOLD.get():
        LOGGER.warning("%s: %s", place, text)
    if (remarks := REMARKS.get()) is not None:
        remarks.append(Remark(place, text))


def check_options(item: ModulePass, **least: int) -> None:
    """
    Raise CompileError if an option of a pass, or one of its several numbers, is below the given
    limit.
    """
    for name, lowest in least.items():
        given: Any = getattr(item, name)
        values = cast(tuple[Any, ...], given if isinstance(given, tuple) else (given,))
        for value in values:
            if isinstance(value, int | float) and value < lowest:
                option = name.replace("_", "-")
                raise CompileError(f"{item.name}: {option} is at least {lowest}, got {value}")


def verify_after(item: ModulePass, module: ModuleOp) -> None:
    """Raise CompileError if a pass left wrong IR."""
    try:
        module.verify()
    except VerifyException as error:
        raise CompileError(f"the IR is wrong after {item.name}: {error}") from error


def apply_verified(passes: tuple[ModulePass, ...], module: ModuleOp, context: Context) -> None:
    """
    Run passes, and verify the result. CompileError names the pass that left wrong IR.

    Verifying costs more than a pass. So the passes run once more on a copy, each verified, only if
    the result is wrong.
    """
    before = module.clone()
    PassPipeline(passes).apply(context, module)
    try:
        module.verify()
    except VerifyException:
        for item in passes:
            PassPipeline((item,)).apply(context, before)
            verify_after(item, before)
        raise


def check_verified(op: Operation) -> None:
    """
    Raise CompileError if an operation given to a pass is wrong. Passes rely on verifiers, and
    pipelines outside xdsl-opt need not verify in between.
    """
    try:
        op.verify()
    except VerifyException as error:
        refuse(op, f"the IR is wrong: {error}; verify the module before the pass")


def refuse(op: Operation, text: str) -> NoReturn:
    """Raise CompileError about an operation."""
    raise Remark(place_of(op), text).error()
