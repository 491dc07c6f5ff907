"""PTX text from nvvm-level IR: one table an operation, and named functions for the few that need one.

Rounding is always explicit (`.rn`): ptxas fuses plain products and sums by itself, and leaves these
alone, so that a kernel computes what its IR says.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, cast

from xdsl.dialects import arith, llvm, scf
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.simt import CELL_BYTES, GLOBAL_SPACE, SHARED_SPACE, address_space
from timetile.passes.arch import Arch, arch_named
from timetile.passes.diagnostics import refuse

SHARED_SYMBOL = "dynamic_shared"

MOST_POLLS = 1 << 20
"""How often a bounded wait looks: for about a second."""

MOST_SLEEPS = 1 << 22
"""The same where a look lasts as long as the hardware likes: longer, so that who lacks a message says so first."""

# (register prefix, PTX type) of each type.
REGISTERS: dict[Attribute, tuple[str, str]] = {
    f64: ("%fd", "f64"),
    f32: ("%f", "f32"),
    i32: ("%r", "s32"),
    i64: ("%rd", "s64"),
    IndexType(): ("%rd", "s64"),
    i1: ("%p", "pred"),
}
DECLARED = {"%fd": "f64", "%f": "f32", "%r": "b32", "%rd": "b64", "%p": "pred"}

# Operation -> mnemonic, followed by the type of the result.
SAME_TYPE: dict[type[Operation], str] = {
    arith.AddfOp: "add.rn",
    arith.SubfOp: "sub.rn",
    arith.MulfOp: "mul.rn",
    arith.DivfOp: "div.rn",
    arith.NegfOp: "neg",
    arith.MaxnumfOp: "max",
    arith.MinnumfOp: "min",
    xmath.FmaOp: "fma.rn",
    xmath.AbsFOp: "abs",
    xmath.SqrtOp: "sqrt.rn",
    simt.ReciprocalOp: "rcp.approx.ftz",
    simt.ReciprocalRootOp: "rsqrt.approx.ftz",
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul.lo",
    arith.DivSIOp: "div",
    arith.RemSIOp: "rem",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
}

# Operation -> mnemonic, followed by u32 or u64.
UNSIGNED: dict[type[Operation], str] = {
    arith.DivUIOp: "div",
    arith.RemUIOp: "rem",
    arith.ShRUIOp: "shr",
    arith.MaxUIOp: "max",
    arith.MinUIOp: "min",
}

# Operation -> mnemonic, followed by b32, b64 or pred.
BITWISE: dict[type[Operation], str] = {
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
    arith.ShLIOp: "shl",
}

# Conversions: rounding, then result type and operand type.
CONVERSIONS: dict[type[Operation], str] = {
    arith.IndexCastOp: "",
    arith.ExtSIOp: "",
    arith.TruncIOp: "",
    arith.SIToFPOp: ".rn",
    arith.FPToSIOp: ".rzi",
    arith.ExtFOp: "",
    arith.TruncFOp: ".rn",
}


INTEGER_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")
FIRST_UNSIGNED = 6

# arith.cmpf's predicates in order; the first and the last are constant.
FLOAT_COMPARISONS = (
    None, "eq", "gt", "ge", "lt", "le", "ne", "num",
    "equ", "gtu", "geu", "ltu", "leu", "neu", "nan", None,
)  # fmt: skip

SPECIAL_REGISTERS: dict[type[Operation], str] = {
    nvvm.ThreadIdXOp: "%tid.x",
    nvvm.BlockIdXOp: "%ctaid.x",
    nvvm.LaneIdOp: "%laneid",
}


def float_literal(value: float, kind: Attribute) -> str:
    """`0d` and 16 hexadecimal digits, or `0f` and 8."""
    if kind == f64:
        return "0d" + struct.pack(">d", value).hex().upper()
    return "0f" + struct.pack(">f", value).hex().upper()


class KernelPrinter:
    """Prints one kernel."""

    def __init__(self, function: llvm.FuncOp, *, bound_waits: bool = False):
        self.function = function
        self.report: str | None = None
        """The register with the address at which a wait that is in vain is reported, where waits are bounded."""
        self.bound_waits = bound_waits
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.offsets: dict[SSAValue, tuple[str, int]] = {}
        self.counts = dict.fromkeys(DECLARED, 0)
        self.labels = 0

    # Names.

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
        """The register or the literal of a value."""
        return self.names[value]

    def label(self, word: str) -> str:
        self.labels += 1
        return f"${word}_{self.labels}"

    def line(self, text: str) -> None:
        self.lines.append(f"\t{text};")

    # The kernel.

    def print(self) -> str:
        """The whole kernel as PTX."""
        name = self.function.sym_name.data
        block = self.function.body.block
        parameters: list[str] = []
        for k, argument in enumerate(block.args):
            parameter = f"{name}_param_{k}"
            pointer = isinstance(argument.type, llvm.LLVMPointerType)
            kind = "u64" if pointer else REGISTERS[argument.type][1].replace("s", "u")
            parameters.append(f"\t.param .{kind} {parameter}")
            register = self.define(argument)
            self.line(f"ld.param.{kind} {register}, [{parameter}]")
            if pointer:
                self.line(f"cvta.to.global.u64 {register}, {register}")
        place = self.function.attributes.get("timetile.report")
        if self.bound_waits and isinstance(place, IntegerAttr):
            self.report = self.use(block.args[place.value.data])
        self.print_block(block)
        threads = self.function.attributes["nvvm.maxntid"]
        assert isinstance(threads, DenseArrayBase)
        shape = ", ".join(str(x) for x in threads.get_values())
        occupancy = self.function.attributes["nvvm.minctasm"]
        assert isinstance(occupancy, IntegerAttr)
        clusters = self.function.attributes.get("nvvm.cluster_dim")
        grouped = ""
        if isinstance(clusters, DenseArrayBase):
            shape_of_cluster = ", ".join(str(x) for x in clusters.get_values())
            grouped = f".explicitcluster\n.reqnctapercluster {shape_of_cluster}\n"
        registers = "\n".join(
            f"\t.reg .{kind} {prefix}<{self.counts[prefix] + 1}>;"
            for prefix, kind in DECLARED.items()
        )
        return (
            f".visible .entry {name}(\n" + ",\n".join(parameters) + "\n)\n"
            f".maxntid {shape}\n.minnctapersm {occupancy.value.data}\n{grouped}{{\n{registers}\n"
            + "\n".join(self.lines)
            + "\n}\n"
        )

    def print_block(self, block: Block) -> None:
        """The operations of a block; its terminator is its parent's affair."""
        for op in block.ops:
            if not isinstance(op, scf.YieldOp):
                self.print_op(op)

    def print_op(self, op: Operation) -> None:
        kind = type(op)
        if kind in SAME_TYPE:
            result = op.results[0]
            self.emit(f"{SAME_TYPE[kind]}.{REGISTERS[result.type][1]}", result, op.operands)
        elif kind in UNSIGNED:
            result = op.results[0]
            self.emit(f"{UNSIGNED[kind]}.{bits('u', result.type)}", result, op.operands)
        elif kind in BITWISE:
            result = op.results[0]
            self.emit(f"{BITWISE[kind]}.{bits('b', result.type)}", result, op.operands)
        elif kind in CONVERSIONS:
            self.print_conversion(op, CONVERSIONS[kind])
        elif kind in SPECIAL_REGISTERS:
            self.line(f"mov.u32 {self.define(op.results[0])}, {SPECIAL_REGISTERS[kind]}")
        elif (method := self.TABLE.get(kind)) is not None:
            method(self, op)
        else:
            refuse(op, "it has no PTX form; use operations of arith, math, scf, nvvm and simt")

    def emit(self, mnemonic: str, result: SSAValue, operands: Iterable[SSAValue]) -> None:
        """`mnemonic result, operands`."""
        texts = ", ".join(self.use(operand) for operand in operands)
        self.line(f"{mnemonic} {self.define(result)}, {texts}")

    # Values.

    def print_constant(self, op: arith.ConstantOp) -> None:
        match op.value:
            case FloatAttr():
                self.names[op.result] = float_literal(op.value.value.data, op.result.type)
            case IntegerAttr() if op.result.type == i1:
                register = self.define(op.result)
                self.line(f"setp.ne.u32 {register}, {abs(op.value.value.data)}, 0")
            case IntegerAttr():
                self.names[op.result] = str(op.value.value.data)
            case _:
                refuse(op, "constants are integers and floats")

    def print_conversion(self, op: Operation, rounding: str) -> None:
        source, target = op.operands[0], op.results[0]
        to, of = REGISTERS[target.type][1], REGISTERS[source.type][1]
        if to == of:
            self.names[target] = self.use(source)
            return
        self.line(f"cvt{rounding}.{to}.{of} {self.define(target)}, {self.use(source)}")

    def print_extui(self, op: arith.ExtUIOp) -> None:
        if op.input.type == i1:
            self.line(
                f"selp.{bits('b', op.result.type)} {self.define(op.result)}, 1, 0, {self.use(op.input)}"
            )
        else:
            self.line(f"cvt.u64.u32 {self.define(op.result)}, {self.use(op.input)}")

    def print_unsigned_to_float(self, op: arith.UIToFPOp) -> None:
        kind = REGISTERS[op.result.type][1]
        if op.input.type == i1:
            one, zero = (float_literal(x, op.result.type) for x in (1.0, 0.0))
            self.line(f"selp.{kind} {self.define(op.result)}, {one}, {zero}, {self.use(op.input)}")
        else:
            source = bits("u", op.input.type)
            self.line(f"cvt.rn.{kind}.{source} {self.define(op.result)}, {self.use(op.input)}")

    def print_compare_integers(self, op: arith.CmpiOp) -> None:
        number = op.predicate.value.data
        kind = bits("u" if number >= FIRST_UNSIGNED else "s", op.lhs.type)
        if number < 2:
            kind = bits("b", op.lhs.type)
        self.emit(f"setp.{INTEGER_COMPARISONS[number]}.{kind}", op.result, op.operands)

    def print_compare_floats(self, op: arith.CmpfOp) -> None:
        number = op.predicate.value.data
        word = FLOAT_COMPARISONS[number]
        if word is None:
            truth = int(number != 0)
            self.line(f"setp.ne.u32 {self.define(op.result)}, {truth}, 0")
            return
        self.emit(f"setp.{word}.{REGISTERS[op.lhs.type][1]}", op.result, op.operands)

    def print_select(self, op: arith.SelectOp) -> None:
        mask, a, b = (self.use(operand) for operand in op.operands)
        if op.result.type == i1:
            kept, other = self.register(i1), self.register(i1)
            self.line(f"and.pred {kept}, {a}, {mask}")
            self.line(f"not.pred {other}, {mask}")
            self.line(f"and.pred {other}, {b}, {other}")
            self.line(f"or.pred {self.define(op.result)}, {kept}, {other}")
            return
        kind = REGISTERS[op.result.type][1]
        self.line(f"selp.{kind} {self.define(op.result)}, {a}, {b}, {mask}")

    def print_propagating(self, op: arith.MaximumfOp | arith.MinimumfOp) -> None:
        """A maximum or minimum that is NaN where an operand is: PTX has it for f32 only."""
        word = "max" if isinstance(op, arith.MaximumfOp) else "min"
        kind = op.result.type
        if kind == f32:
            self.emit(f"{word}.NaN.f32", op.result, op.operands)
            return
        a, b = self.use(op.lhs), self.use(op.rhs)
        unordered, larger, nan = self.register(i1), self.register(kind), self.register(kind)
        self.line(f"setp.nan.f64 {unordered}, {a}, {b}")
        self.line(f"{word}.f64 {larger}, {a}, {b}")
        self.line(f"add.rn.f64 {nan}, {a}, {b}")
        self.line(f"selp.f64 {self.define(op.result)}, {nan}, {larger}, {unordered}")

    def print_rsqrt(self, op: xmath.RsqrtOp) -> None:
        """The reciprocal of the square root, both rounded: PTX's own is approximate."""
        kind = REGISTERS[op.result.type][1]
        root = self.register(op.result.type)
        self.line(f"sqrt.rn.{kind} {root}, {self.use(op.operand)}")
        self.line(f"rcp.rn.{kind} {self.define(op.result)}, {root}")

    def print_copysign(self, op: xmath.CopySignOp) -> None:
        """PTX names the operand that gives the sign first."""
        kind = REGISTERS[op.result.type][1]
        magnitude, sign = self.use(op.lhs), self.use(op.rhs)
        self.line(f"copysign.{kind} {self.define(op.result)}, {sign}, {magnitude}")

    # Control flow.

    def print_for(self, op: scf.ForOp) -> None:
        """A counted loop, tested before the first turn and at the end of each."""
        start, end = self.label("loop"), self.label("end")
        index, *carried = op.body.block.args
        counter = self.define(index)
        kind = REGISTERS[index.type][1]
        bound = self.use(op.ub)
        test = self.register(i1)
        self.line(f"mov.{bits('b', index.type)} {counter}, {self.use(op.lb)}")
        for argument, initial in zip(carried, op.iter_args):
            register = self.define(argument)
            self.line(f"mov.{move_kind(argument.type)} {register}, {self.use(initial)}")
        self.line(f"setp.ge.{kind} {test}, {counter}, {bound}")
        self.line(f"@{test} bra {end}")
        self.lines.append(f"{start}:")
        self.print_block(op.body.block)
        terminator = op.body.block.last_op
        assert isinstance(terminator, scf.YieldOp)
        self.assign([self.use(a) for a in carried], terminator.arguments)
        self.line(f"add.{kind} {counter}, {counter}, {self.use(op.step)}")
        self.line(f"setp.lt.{kind} {test}, {counter}, {bound}")
        self.line(f"@{test} bra {start}")
        self.lines.append(f"{end}:")
        for result, argument in zip(op.results, carried):
            self.names[result] = self.use(argument)

    def assign(self, targets: Sequence[str], values: Sequence[SSAValue]) -> None:
        """Assign all at once: what is both read and written goes through a new register."""
        pairs = [(t, self.use(v), v.type) for t, v in zip(targets, values) if t != self.use(v)]
        written = {target for target, _, _ in pairs}
        saved: dict[str, str] = {}
        for _, value, kind in pairs:
            if value in written and value not in saved:
                saved[value] = self.register(kind)
                self.line(f"mov.{move_kind(kind)} {saved[value]}, {value}")
        for target, value, kind in pairs:
            self.line(f"mov.{move_kind(kind)} {target}, {saved.get(value, value)}")

    def print_if(self, op: scf.IfOp) -> None:
        """A branch; values come back through registers that both sides assign."""
        otherwise, end = self.label("else"), self.label("fi")
        results = [self.define(result) for result in op.results]
        self.line(f"@!{self.use(op.cond)} bra {otherwise}")
        self.print_branch(op.true_region.block, results)
        if op.false_region.blocks:
            self.line(f"bra {end}")
        self.lines.append(f"{otherwise}:")
        if op.false_region.blocks:
            self.print_branch(op.false_region.block, results)
            self.lines.append(f"{end}:")

    def print_branch(self, block: Block, results: Sequence[str]) -> None:
        self.print_block(block)
        if isinstance(terminator := block.last_op, scf.YieldOp):
            self.assign(results, terminator.arguments)

    # Memory.

    def address(self, pointer: SSAValue, offset: int = 0) -> str:
        """`[register+bytes]`."""
        base, constant = self.offsets.get(pointer, ("", 0))
        total = constant + offset
        register = base or self.use(pointer)
        return f"[{register}+{total}]" if total else f"[{register}]"

    def print_gep(self, op: llvm.GEPOp) -> None:
        """A pointer plus an index; constants are folded into the addresses."""
        size = CELL_BYTES[op.elem_type]
        (constant,) = op.rawConstantIndices.get_values()
        if not op.ssa_indices:
            base, known = self.offsets.get(op.ptr, ("", 0))
            self.offsets[op.result] = (base or self.use(op.ptr), known + int(constant) * size)
            return
        index = op.ssa_indices[0]
        base, name = self.use(op.ptr), self.use(index)
        if address_space(op.ptr) != GLOBAL_SPACE:
            self.line(f"mad.lo.s32 {self.define(op.result)}, {name}, {size}, {base}")
        elif index.type == i32:
            self.line(f"mad.wide.s32 {self.define(op.result)}, {name}, {size}, {base}")
        else:
            self.line(f"mad.lo.s64 {self.define(op.result)}, {name}, {size}, {base}")

    def access(
        self, word: str, op: simt.LoadOp | simt.StoreOp | simt.OverrideOp, registers: list[str]
    ) -> None:
        """A load or a store of one or several cells, under its mask."""
        kind = op.cell_types[0]
        space = "shared" if address_space(op.buffer) == SHARED_SPACE else "global"
        vector, data = together(registers)
        where = self.address(op.buffer, op.offset.value.data * CELL_BYTES[kind])
        guard = "" if op.mask is None else f"@{self.use(op.mask)} "
        operands = f"{data}, {where}" if word == "ld" else f"{where}, {data}"
        self.line(f"{guard}{word}.{space}{vector}.{move_kind(kind)} {operands}")

    def print_load(self, op: simt.LoadOp) -> None:
        self.access("ld", op, [self.define(cell) for cell in op.cells])

    def print_store(self, op: simt.StoreOp) -> None:
        self.access("st", op, [self.in_register(cell) for cell in op.cells])

    def in_register(self, value: SSAValue) -> str:
        """The value's register; a constant is moved to one."""
        name = self.use(value)
        if name.startswith("%"):
            return name
        register = self.register(value.type)
        self.line(f"mov.{move_kind(value.type)} {register}, {name}")
        return register

    def print_override(self, op: simt.OverrideOp) -> None:
        registers: list[str] = []
        for cell, result in zip(op.cells, op.res):
            register = self.define(result)
            self.line(f"mov.{move_kind(cell.type)} {register}, {self.use(cell)}")
            registers.append(register)
        self.access("ld", op, registers)

    def print_prefetch(self, op: simt.PrefetchOp) -> None:
        where = self.address(op.buffer, op.offset.value.data * CELL_BYTES[op.cell])
        guard = "" if op.mask is None else f"@{self.use(op.mask)} "
        self.line(f"{guard}prefetch.global.L1 {where}")

    def print_shared(self, op: simt.SharedOp) -> None:
        register = self.define(op.result)
        self.line(f"mov.u32 {register}, {SHARED_SYMBOL}")
        if op.at.value.data:
            self.line(f"add.u32 {register}, {register}, {op.at.value.data}")

    def print_unset(self, op: simt.UnsetOp) -> None:
        zero = op.result.type in (f32, f64)
        self.names[op.result] = float_literal(0.0, op.result.type) if zero else "0"

    def print_bitcast(self, op: arith.BitcastOp) -> None:
        self.emit(f"mov.{bits('b', op.result.type)}", op.result, op.operands)

    def print_split(self, op: simt.SplitOp) -> None:
        low, high = self.define(op.low), self.define(op.high)
        self.line(f"mov.b64 {{{low}, {high}}}, {self.use(op.value)}")

    def print_join(self, op: simt.JoinOp) -> None:
        low, high = self.use(op.low), self.use(op.high)
        self.line(f"mov.b64 {self.define(op.result)}, {{{low}, {high}}}")

    # What threads do together.

    def print_shuffle(self, op: nvvm.ShflSyncOp) -> None:
        value, offset, clamp, mask = (
            self.use(v) for v in (op.val, op.offset, op.mask_and_clamp, op.thread_mask)
        )
        kind = op.kind.value.data
        self.line(f"shfl.sync.{kind}.b32 {self.define(op.res)}, {value}, {offset}, {clamp}, {mask}")

    def print_redux(self, op: nvvm.ReduxSyncOp) -> None:
        kind = op.kind.value.data
        signed = "u32" if kind.startswith("u") else "b32" if kind in ("and", "or", "xor") else "s32"
        value, mask = self.use(op.val), self.use(op.mask_and_clamp)
        word = f"redux.sync.{kind.removeprefix('u')}.{signed}"
        self.line(f"{word} {self.define(op.res)}, {value}, {mask}")

    def print_vote(self, op: nvvm.VoteSyncOp) -> None:
        predicate, mask = self.use(op.pred), self.use(op.mask)
        word = f"vote.sync.{op.kind.value.data}.pred"
        self.line(f"{word} {self.define(op.res)}, {predicate}, {mask}")

    def print_copy(self, op: nvvm.CpAsyncOp) -> None:
        size = op.size.value.data
        taken = "" if op.cp_size is None else f", {self.use(op.cp_size)}"
        modifier = op.modifier.value.data
        target, source = self.address(op.dst), self.address(op.src)
        self.line(f"cp.async.{modifier}.shared.global {target}, {source}, {size}{taken}")

    def print_wait(self, op: nvvm.CpAsyncWaitGroupOp) -> None:
        self.line(f"cp.async.wait_group {op.n.value.data}")

    def print_commit(self, op: nvvm.CpAsyncCommitGroupOp) -> None:
        self.line("cp.async.commit_group")

    def print_barrier(self, op: nvvm.BarrierOp) -> None:
        self.line("bar.sync 0")

    def print_warp_sync(self, op: nvvm.WarpSyncOp) -> None:
        self.line(f"bar.warp.sync {self.use(op.mask)}")

    def begin_wait(self, word: str) -> tuple[str, str]:
        """The head of a loop that waits: its label, and the register that counts where waits are bounded."""
        again, polls = self.label(word), ""
        if self.report is not None:
            polls = self.register(i32)
            self.line(f"mov.u32 {polls}, 0")
        self.lines.append(f"{again}:")
        return again, polls

    def end_wait(
        self,
        again: str,
        polls: str,
        missing: str,
        number: str,
        most: int = MOST_POLLS,
        *,
        warp: bool = False,
    ) -> None:
        """
        Its end: again while something is missing. Where waits are bounded, one that lasts too long is
        reported, as the block's number from 1 on and what it waits for, and from then on nobody waits. A
        whole warp that waits together leaves together.
        """
        if self.report is None:
            self.line(f"@{missing} bra {again}")
            return
        done, stop, said = self.label("done"), self.register(i1), self.register(i64)
        block, waited = self.register(i32), self.register(i32)
        self.line(f"@{'' if missing.startswith('!') else '!'}{missing.lstrip('!')} bra {done}")
        self.line(f"ld.relaxed.gpu.global.u64 {said}, [{self.report}]")
        self.line(f"setp.ne.u64 {stop}, {said}, 0")
        if warp:
            self.line(f"vote.sync.any.pred {stop}, {stop}, -1")
        self.line(f"@{stop} bra {done}")
        self.line(f"add.u32 {polls}, {polls}, 1")
        self.line(f"setp.lt.u32 {stop}, {polls}, {most}")
        self.line(f"@{stop} bra {again}")
        self.line(f"mov.u32 {block}, %ctaid.x")
        self.line(f"add.u32 {block}, {block}, 1")
        self.line(f"mov.u32 {waited}, {number}")
        self.line(f"mov.b64 {said}, {{{block}, {waited}}}")
        self.line(f"st.relaxed.gpu.global.u64 [{self.report}], {said}")
        self.lines.append(f"{done}:")

    def print_mbarrier_init(self, op: nvvm.MbarrierInitOp) -> None:
        self.line(f"mbarrier.init.shared.b64 {self.address(op.addr)}, {self.use(op.count)}")

    def print_mbarrier_arrive(self, op: nvvm.MbarrierArriveOp) -> None:
        self.line(f"mbarrier.arrive.shared.b64 {self.define(op.res)}, {self.address(op.addr)}")

    def print_mbarrier_wait(self, op: nvvm.MbarrierTryWaitParityOp) -> None:
        """
        A loop: the instruction comes back when the phase is complete, or after a while that the hardware
        chooses. (Given one, the assembler adds a sleep of its own, which costs registers.)
        """
        done = self.register(i1)
        where, phase = self.address(op.addr), self.use(op.phase)
        again, polls = self.begin_wait("wait")
        self.line(f"mbarrier.try_wait.parity.shared.b64 {done}, {where}, {phase}")
        self.end_wait(again, polls, f"!{done}", "0", MOST_SLEEPS)

    def print_mbarrier_expect(self, op: nvvm.MbarrierArriveExpectTxOp) -> None:
        state, where = self.register(i64), self.address(op.addr)
        count = self.use(op.txcount)
        self.line(f"mbarrier.arrive.expect_tx.shared.b64 {state}, {where}, {count}")

    def print_mapa(self, op: nvvm.MapaOp) -> None:
        self.emit("mapa.shared::cluster.u32", op.res, op.operands)

    def print_send(self, op: simt.SendOp) -> None:
        """Cells to another block; they are counted there when they have come."""
        registers = [self.in_register(cell) for cell in op.cells]
        kind = op.cell_types[0]
        vector, data = together(registers)
        where = self.address(op.buffer, op.offset.value.data * CELL_BYTES[kind])
        guard = "" if op.mask is None else f"@{self.use(op.mask)} "
        word = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
        count = self.address(op.arrivals)
        self.line(f"{guard}{word}{vector}.{move_kind(kind)} {where}, {data}, {count}")

    def print_post(self, op: simt.PostOp) -> None:
        """Each 64-bit word, four bytes of a cell and the message's number, is written at once."""
        if op.number is None:
            for cell, place in zip(op.cells, op.places):
                where, kind = self.address(op.buffer, place * CELL_BYTES[i64]), move_kind(cell.type)
                self.line(f"st.global.{kind} {where}, {self.in_register(cell)}")
            return
        number = self.in_register(op.number)
        for cell, place in zip(op.cells, op.places):
            where = self.address(op.buffer, place * CELL_BYTES[i64])
            halves = [self.in_register(cell)]
            if CELL_BYTES[cell.type] == CELL_BYTES[i64]:
                halves = [self.register(i32), self.register(i32)]
                self.line(f"mov.b64 {{{', '.join(halves)}}}, {self.in_register(cell)}")
            words: list[str] = []
            for half in halves:
                words.append(self.register(i64))
                self.line(f"mov.b64 {words[-1]}, {{{half}, {number}}}")
            vector, data = together(words)
            self.line(f"st.relaxed.gpu.global{vector}.b64 {where}, {data}")

    def print_take(self, op: simt.TakeOp) -> None:
        """A loop that reads all words until each has the message's number, in all lanes of the warp."""
        if op.number is None:
            for cell, place in zip(op.cells, op.places):
                where, kind = self.address(op.buffer, place * CELL_BYTES[i64]), move_kind(cell.type)
                self.line(f"ld.global.{kind} {self.define(cell)}, {where}")
            return
        number, missing, test = self.use(op.number), self.register(i1), self.register(i1)
        again, polls = self.begin_wait("take")
        halves: list[list[str]] = []
        seen: list[str] = []
        for kind, place in zip(op.cell_types, op.places):
            where = self.address(op.buffer, place * CELL_BYTES[i64])
            words = [self.register(i64) for _ in range(CELL_BYTES[kind] // CELL_BYTES[i32])]
            vector, data = together(words)
            self.line(f"ld.relaxed.gpu.global{vector}.b64 {data}, {where}")
            halves.append([])
            for word in words:
                halves[-1].append(self.register(i32))
                seen.append(self.register(i32))
                self.line(f"mov.b64 {{{halves[-1][-1]}, {seen[-1]}}}, {word}")
        self.line(f"setp.ne.u32 {missing}, {seen[0]}, {number}")
        for other in seen[1:]:
            self.line(f"setp.ne.or.u32 {test}, {other}, {number}, {missing}")
            missing, test = test, self.register(i1)
        self.line(f"vote.sync.any.pred {test}, {missing}, -1")
        self.end_wait(again, polls, test, number, warp=True)
        for cell, parts in zip(op.cells, halves):
            register = self.define(cell)
            if len(parts) > 1:
                self.line(f"mov.b64 {register}, {{{', '.join(parts)}}}")
            else:
                self.line(f"mov.b32 {register}, {parts[0]}")

    def print_tile_barrier(self, op: simt.TileBarrierOp) -> None:
        """
        One thread counts its block, after all of it has come, and waits until all blocks are counted: what
        the block did before is released with it, and what the others did is acquired.
        """
        others, behind = self.register(i1), self.label("met")
        thread, wanted, seen = self.register(i32), self.register(i32), self.register(i32)
        where = self.address(op.words)
        self.line("bar.sync 0")
        self.line(f"mov.u32 {thread}, %tid.x")
        self.line(f"setp.ne.u32 {others}, {thread}, 0")
        self.line(f"@{others} bra {behind}")
        self.line(f"mul.lo.s32 {wanted}, {self.use(op.number)}, {op.blocks.value.data}")
        self.line(f"red.release.gpu.global.add.u32 {where}, 1")
        again, polls = self.begin_wait("meet")
        self.line(f"ld.acquire.gpu.global.u32 {seen}, {where}")
        self.line(f"setp.lt.u32 {others}, {seen}, {wanted}")
        self.end_wait(again, polls, others, self.use(op.number))
        self.lines.append(f"{behind}:")
        self.line("bar.sync 0")

    def print_cluster_arrive(self, op: nvvm.ClusterArriveOp) -> None:
        self.line("barrier.cluster.arrive.aligned")

    def print_cluster_wait(self, op: nvvm.ClusterWaitOp) -> None:
        self.line("barrier.cluster.wait.aligned")

    def print_fence_mbarrier_init(self, op: nvvm.FenceMbarrierInitOp) -> None:
        self.line("fence.mbarrier_init.release.cluster")

    def print_return(self, op: llvm.ReturnOp) -> None:
        self.line("ret")

    TABLE: ClassVar[dict[type[Operation], Callable[..., None]]] = {
        arith.ConstantOp: print_constant,
        arith.ExtUIOp: print_extui,
        arith.UIToFPOp: print_unsigned_to_float,
        arith.CmpiOp: print_compare_integers,
        arith.CmpfOp: print_compare_floats,
        arith.SelectOp: print_select,
        arith.BitcastOp: print_bitcast,
        arith.MaximumfOp: print_propagating,
        arith.MinimumfOp: print_propagating,
        xmath.RsqrtOp: print_rsqrt,
        xmath.CopySignOp: print_copysign,
        scf.ForOp: print_for,
        scf.IfOp: print_if,
        llvm.GEPOp: print_gep,
        simt.LoadOp: print_load,
        simt.StoreOp: print_store,
        simt.OverrideOp: print_override,
        simt.PrefetchOp: print_prefetch,
        simt.SharedOp: print_shared,
        simt.UnsetOp: print_unset,
        simt.SplitOp: print_split,
        simt.JoinOp: print_join,
        nvvm.ShflSyncOp: print_shuffle,
        nvvm.ReduxSyncOp: print_redux,
        nvvm.VoteSyncOp: print_vote,
        nvvm.CpAsyncOp: print_copy,
        nvvm.CpAsyncWaitGroupOp: print_wait,
        nvvm.CpAsyncCommitGroupOp: print_commit,
        nvvm.BarrierOp: print_barrier,
        nvvm.WarpSyncOp: print_warp_sync,
        nvvm.MbarrierInitOp: print_mbarrier_init,
        nvvm.MbarrierArriveOp: print_mbarrier_arrive,
        nvvm.MbarrierArriveExpectTxOp: print_mbarrier_expect,
        nvvm.MbarrierTryWaitParityOp: print_mbarrier_wait,
        nvvm.MapaOp: print_mapa,
        nvvm.ClusterArriveOp: print_cluster_arrive,
        nvvm.ClusterWaitOp: print_cluster_wait,
        nvvm.FenceMbarrierInitOp: print_fence_mbarrier_init,
        simt.SendOp: print_send,
        simt.PostOp: print_post,
        simt.TakeOp: print_take,
        simt.TileBarrierOp: print_tile_barrier,
        llvm.ReturnOp: print_return,
    }


def together(registers: Sequence[str]) -> tuple[str, str]:
    """Registers that one access moves: `.v2` and `{%a, %b}`, or nothing and the only one."""
    if len(registers) == 1:
        return "", registers[0]
    return f".v{len(registers)}", "{" + ", ".join(registers) + "}"


def bits(letter: str, kind: Attribute) -> str:
    """`u32`, `b64`, `pred` and the like."""
    if kind == i1:
        return "pred"
    width = cast(IntegerType, kind).bitwidth if isinstance(kind, IntegerType) else 64
    return f"{letter}{width}"


def move_kind(kind: Attribute) -> str:
    """The type of a move or of a memory access."""
    name = REGISTERS[kind][1]
    return name.replace("s", "b") if name.startswith("s") else name


NEWER = nvvm.MbarrierTryWaitParityOp | nvvm.MapaOp | nvvm.ClusterArriveOp
"""What kernels that arrive and wait, or reach other blocks of a cluster, cannot do without."""


def check_target(functions: Sequence[llvm.FuncOp], arch: Arch) -> None:
    """Refuse what an architecture has no instruction for."""
    if arch.splits_barriers:
        return
    for op in (op for function in functions for op in function.walk() if isinstance(op, NEWER)):
        refuse(
            op,
            f"{arch.name} has no such instruction; use sync=barrier and tiles of a block, or sync=grid and tiles of the device",
        )


def print_module(
    functions: Sequence[llvm.FuncOp], version: str, target: str, *, bound_waits: bool = False
) -> str:
    """A PTX module with these kernels; where blocks wait for each other, waits may be bounded."""
    check_target(functions, arch_named(target))
    header = (
        f"//\n// Generated by timetile\n//\n.version {version}\n.target {target}\n.address_size 64\n\n"
        f".extern .shared .align 128 .b8 {SHARED_SYMBOL}[];\n\n"
    )
    printers = (KernelPrinter(function, bound_waits=bound_waits) for function in functions)
    return header + "\n".join(printer.print() for printer in printers)


def kernels_of(module: Operation) -> list[llvm.FuncOp]:
    """The kernels of a module, in order."""
    return [
        op for op in module.walk() if isinstance(op, llvm.FuncOp) and "nvvm.kernel" in op.attributes
    ]
