"""The registers, names and lines of one kernel's PTX during printing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.dialects import llvm, scf
from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from timetile.dialects.simt import GLOBAL_SPACE
from timetile.lowering.ptx.text import DECLARED, REGISTERS, move_kind
from timetile.passes.diagnostics import refuse


class Writer:
    """Writes operations by a table of functions, one a kind."""

    def __init__(self, table: Mapping[type[Operation], Callable[..., None]]):
        self.table = table
        self.report: str | None = None
        """The register with the address for reports of waits in vain, if waits are bounded."""
        self.lines: list[str] = []
        self.loads_to_set: set[Operation] = set()
        """Loads under a mask whose registers are set before the load."""
        self.names: dict[SSAValue, str] = {}
        self.rounded: dict[SSAValue, str] = {}
        """The 16-bit registers of numbers that were rounded to a 16-bit float."""
        self.scalars: dict[SSAValue, tuple[str, str]] = {}
        """The kinds and names of scalar parameters, for kernels with too many for registers."""
        self.offsets: dict[SSAValue, tuple[str, int]] = {}
        """Pointers equal to another pointer's register plus a constant, in bytes."""
        self.functions: dict[str, tuple[str, int]] = {}
        """The called library functions: `double` or `float`, and the number of operands."""
        self.counts = dict.fromkeys(DECLARED, 0)
        self.labels = 0

    def register(self, kind: Attribute) -> str:
        """A new register for a type."""
        if isinstance(kind, llvm.LLVMPointerType):
            prefix = "%rd" if kind.addr_space == IntAttr(GLOBAL_SPACE) else "%r"
        else:
            prefix = REGISTERS[kind][0]
        self.counts[prefix] += 1
        return f"{prefix}{self.counts[prefix]}"

    def define(self, value: SSAValue) -> str:
        """The register of a new value."""
        name = self.names[value] = self.register(value.type)
        return name

    def use(self, value: SSAValue) -> str:
        """The register or the literal of a value; for a scalar read at its use, a new register."""
        if value not in self.scalars:
            return self.names[value]
        kind, parameter = self.scalars[value]
        register = self.register(value.type)
        self.line(f"ld.param.{kind} {register}, [{parameter}]")
        return register

    def label(self, word: str) -> str:
        """A new label."""
        self.labels += 1
        return f"${word}_{self.labels}"

    def line(self, text: str) -> None:
        """Add a line with an instruction."""
        self.lines.append(f"\t{text};")

    def emit(self, mnemonic: str, result: SSAValue, operands: Iterable[SSAValue]) -> None:
        """`mnemonic result, operands`."""
        texts = ", ".join(self.use(operand) for operand in operands)
        self.line(f"{mnemonic} {self.define(result)}, {texts}")

    def in_register(self, value: SSAValue) -> str:
        """The value's register; a constant is moved to one."""
        name = self.use(value)
        if name.startswith("%"):
            return name
        register = self.register(value.type)
        self.line(f"mov.{move_kind(value.type)} {register}, {name}")
        return register

    def assign(self, targets: Sequence[str], values: Sequence[SSAValue]) -> None:
        """Assign all at once: a register both read and written goes through a new register."""
        pairs = [(t, self.use(v), v.type) for t, v in zip(targets, values) if t != self.use(v)]
        written = {target for target, _, _ in pairs}
        saved: dict[str, str] = {}
        for _, value, kind in pairs:
            if value in written and value not in saved:
                saved[value] = self.register(kind)
                self.line(f"mov.{move_kind(kind)} {saved[value]}, {value}")
        for target, value, kind in pairs:
            self.line(f"mov.{move_kind(kind)} {target}, {saved.get(value, value)}")

    def print_block(self, block: Block) -> None:
        """Print the operations of a block. The parent prints the terminator."""
        for op in block.ops:
            if not isinstance(op, scf.YieldOp):
                self.print_op(op)

    def print_op(self, op: Operation) -> None:
        """Print an operation."""
        function = self.table.get(type(op))
        if function is None:
            refuse(
                op,
                "the operation has no PTX form; use operations of arith, math, scf, nvvm and simt",
            )
        function(self, op)
