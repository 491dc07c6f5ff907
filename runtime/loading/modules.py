"""Loads text or a module as a verified module with file and line of each operation."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Span

from timetile.dialects.verified_once import verify_module
from timetile.passes.diagnostics import CompileError
from timetile.runtime.loading.made import MadeProgram
from timetile.runtime.loading.names import keep_names
from timetile.runtime.loading.plugins import InstalledDialects
from timetile.runtime.loading.spellings import modern
from timetile.runtime.loading.spellings.earth import line_in_turn
from timetile.runtime.loading.spellings.forms import with_form
from timetile.runtime.loading.spellings.structure import modern_structure
from timetile.runtime.loading.spellings.symbols import SYMBOLS, symbols_to_arguments

NUMBERED_BLOCK = re.compile(r"\^(?=\d)")
"""The name of a block as printed by older versions of xDSL: `^0`, unreadable for newer versions."""

TOO_MANY_AXES = re.compile(r"Expected 1 to 3 indexes for stencil\.index, got (\d+)")
"""How xDSL refuses a field, a box or an offset of more axes than the dialect has."""
FEWER_AXES = (
    "give each index of the outermost axes a field of its own, or run the program once for each of "
    "them"
)

UNKNOWN_BOUNDS = re.compile(r"#builtin\.int<\d> should be of base attribute stencil\.bounds")
"""How xDSL refuses an external field of `?x?` cells."""
STATIC_BOUNDS = (
    "a field here has unknown bounds; give them, as in !stencil.field<[0,64]x[0,64]xf64>"
)

NO_CUSTOM_FORM = re.compile(r"Operation ([\w.]+) does not have a custom format")
"""How xDSL refuses the spelling of MLIR for an operation."""
GENERIC_FORM = (
    "is read in its generic form only; print the program with `mlir-opt --mlir-print-op-generic`"
)


def make_context() -> InstalledDialects:
    """A context that knows all installed dialects."""
    context = InstalledDialects()
    context.register_dialect(SYMBOLS.name, lambda: SYMBOLS)
    return context


class LocatingParser(Parser):
    """
    A parser that gives each operation the location of its first character, and keeps the whole
    names of arguments: xDSL leaves the location unknown, and drops numbers at the end of names.
    """

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, text, name)
        self.file = StringAttr(name)
        self.lines = [0, *(k + 1 for k, character in enumerate(text) if character == "\n")]
        self.names: dict[SSAValue, str] = {}

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        self.names.update((value, name) for value in values if isinstance(value, BlockArgument))

    def _get_op_by_name(self, name: str) -> type[Operation]:
        return with_form(super()._get_op_by_name(name))

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        return super()._parse_generic_operation(super()._get_op_by_name(op_type.name))

    def parse_operation(self) -> Operation:
        """Parse an operation, and set its location."""
        start = self.pos
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            line = bisect_right(self.lines, start)
            column = start - self.lines[line - 1] + 1
            op.location = FileLineColLoc(self.file, IntAttr(line), IntAttr(column))
        return op


BYTE_ORDER_MARK = "\ufeff"
"""Put at the beginning of files by some editors; no part of a program."""


def text_of(path: Path) -> str:
    """The text of a program's file, in UTF-8."""
    return path.read_text(encoding="utf-8")


def load_text(text: str, name: str = "<program>") -> ModuleOp:
    """
    Parse and verify a program, with or without a byte order mark. Raises CompileError, with the
    place of an error.
    """
    text = text.removeprefix(BYTE_ORDER_MARK)
    if not text.strip():
        raise CompileError(f"{name} is empty; write a function with a time loop")
    if text.endswith(".mlir") and "\n" not in text:
        raise CompileError(
            f"{text!r} is taken for the text of a program; give a file as pathlib.Path({text!r})"
        )
    text = NUMBERED_BLOCK.sub("^bb", text)
    try:
        return parsed(text, name)
    except CompileError:
        if (line := line_in_turn(text)) is not None:
            refuse_in_turn(name, line)
        spelt_anew = modern(text)
        if spelt_anew == text:
            raise
    return parsed(spelt_anew, name)


def refuse_in_turn(name: str, line: int) -> NoReturn:
    """Raise CompileError for an apply with cells computed in turn."""
    reason = (
        "stencil.apply seq computes cells in turn along an axis, and cells of a stencil are "
        "independent; leave the apply out of the program"
    )
    raise CompileError(f"{name}:{line}: {reason}", reason=reason, file=name, line=line)


def parsed(text: str, name: str) -> ModuleOp:
    """
    Parse and verify a program in xDSL's spelling. Raises CompileError, with the place of an error.
    """
    parser: LocatingParser | None = None
    try:
        # A parser reads the first word when it is made.
        parser = LocatingParser(make_context(), text, name)
        module = parser.parse_module()
        symbols_to_arguments(module, parser.names)
        keep_names(module, parser.names)
        modern_structure(module)
        verify_module(module)
        module = without_inner_modules(module, name)
    except ParseError as error:
        line = text.count("\n", 0, error.span.start) + 1
        if generic := NO_CUSTOM_FORM.search(error.msg):
            reason = f"{generic[1]} {GENERIC_FORM}"
            raise CompileError(
                f"{name}:{line}: {reason}", reason=reason, file=name, line=line
            ) from error
        raise CompileError(
            f"{name} is not a valid program: {error}", reason=error.msg, file=name, line=line
        ) from error
    except (VerifyException, ValueError) as error:
        if UNKNOWN_BOUNDS.search(str(error)):
            line = line_read(text, parser)
            raise CompileError(
                f"{name}:{line}: {STATIC_BOUNDS}", reason=STATIC_BOUNDS, file=name, line=line
            ) from error
        if many := TOO_MANY_AXES.search(str(error)):
            line = line_read(text, parser)
            axes = f"an operation or a type here has {many[1]} axes"
            reason = f"{axes}, and programs have 1 to 3; {FEWER_AXES}"
            raise CompileError(
                f"{name}:{line}: {reason}", reason=reason, file=name, line=line
            ) from error
        raise CompileError(
            f"{name} is not a valid program: {error}", reason=str(error), file=name
        ) from error
    return module


def line_read(text: str, parser: Parser | None) -> int:
    """The last line that a parser has read; it may have read ahead."""
    return text[: parser.pos if parser else 0].rstrip().count("\n") + 1


def without_inner_modules(module: ModuleOp, name: str) -> ModuleOp:
    """
    Merges a file that contains only modules into one module. CompileError if two modules define one
    symbol.
    """
    inner = [op for op in module.ops if isinstance(op, ModuleOp)]
    if not inner or len(inner) < len(list(module.ops)):
        return module
    merged = ModuleOp([])
    for each in inner:
        for op in list(each.body.block.ops):
            op.detach()
            merged.body.block.add_op(op)
    symbols = [
        symbol.data
        for op in merged.ops
        if isinstance(symbol := op.properties.get("sym_name"), StringAttr)
    ]
    for symbol in symbols:
        if symbols.count(symbol) > 1:
            reason = f"several of its modules define @{symbol}; give it one module of them"
            raise CompileError(f"{name}: {reason}", reason=reason, file=name)
    return without_inner_modules(merged, name)


def check_program(program: object) -> None:
    """Raise TypeError for a program that cannot be loaded."""
    if not isinstance(program, ModuleOp | str | Path | MadeProgram):
        raise TypeError(
            f"the program is a module, its text or a pathlib.Path, got {type(program).__name__}"
        )


def load(program: ModuleOp | str | Path | MadeProgram) -> ModuleOp:
    """
    A program given as a module (copied), as text, as a file, or made now. Raises TypeError for
    other objects.
    """
    check_program(program)
    match program:
        case ModuleOp():
            return program.clone()
        case Path():
            return load_text(text_of(program), str(program))
        case str():
            return load_text(program)
        case MadeProgram():
            return program.make()
