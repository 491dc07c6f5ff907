"""The executor of PTX knows every instruction of the printer of PTX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TypeVarTuple

import pytest
from xdsl.dialects import arith, llvm, scf
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from timetile.dialects import nvvm, simt
from timetile.dialects.cell_types import CELL_BYTES, STORED_FLOATS, STORED_TYPES
from timetile.dialects.simt import CLUSTER_SPACE, GLOBAL_SPACE, SHARED_SPACE
from timetile.dialects.temporal import RoundOp
from timetile.lowering.ptx.functions import CALLS, device_functions
from timetile.lowering.ptx.module import TABLE
from timetile.lowering.ptx.symbols import SHARED_SYMBOL
from timetile.lowering.ptx.text import DECLARED, REGISTERS
from timetile.lowering.ptx.values import (
    CONVERSIONS,
    MNEMONICS,
    SHIFTS,
    SPECIAL_REGISTERS,
)
from timetile.lowering.ptx.writer import Writer
from timetile.runtime.executors.ptx.parse import parse_module
from timetile.runtime.executors.ptx.program import Program
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.kernels.assembler import AssemblerError, assemble

GENERIC = MNEMONICS.keys() | CONVERSIONS.keys() | SHIFTS.keys() | CALLS.keys()
"""Operations with operands of one type each."""

Given = TypeVarTuple("Given")

Made = Iterator[Operation]


def pointer(space: int) -> llvm.LLVMPointerType:
    return llvm.LLVMPointerType(IntAttr(space))


def value(kind: Attribute) -> SSAValue:
    """A value from elsewhere."""
    return Block(arg_types=[kind]).args[0]


FIELD, SHARED, CLUSTER = (pointer(s) for s in (GLOBAL_SPACE, SHARED_SPACE, CLUSTER_SPACE))

CELLS = tuple(CELL_BYTES)
"""The types of cells."""

NUMBERS = tuple(kind for kind in REGISTERS if kind != i1)

COMPUTED = tuple(kind for kind in REGISTERS if kind not in STORED_TYPES)
"""The types that operations compute with."""


def generic(kind: type[Operation]) -> Made:
    """An operation for all types accepted by the verifier and known to the printer."""
    assert issubclass(kind, IRDLOperation)
    count = len(kind.get_irdl_definition().operands)
    for operand, result in product(COMPUTED, COMPUTED):
        op = kind.create(operands=[value(operand) for _ in range(count)], result_types=[result])
        try:
            op.verify()
        except VerifyException:
            continue
        yield op


def extensions() -> Made:
    for source, target in ((f16, f32), (bf16, f32), (f32, f64)):
        yield arith.ExtFOp(value(source), target)


def truncations() -> Made:
    for source, target in ((f32, f16), (f32, bf16), (f64, f32)):
        yield arith.TruncFOp(value(source), target)


def comparisons() -> Made:
    for kind in COMPUTED:
        for predicate in range(10):
            if kind not in (f32, f64):
                yield arith.CmpiOp(value(kind), value(kind), predicate)
        for predicate in range(16):
            if kind in (f32, f64):
                yield arith.CmpfOp(value(kind), value(kind), predicate)


def constants() -> Made:
    yield arith.ConstantOp(IntegerAttr(1, i1))
    yield arith.ConstantOp(FloatAttr(1.5, f64))


def choices() -> Made:
    for kind in REGISTERS:
        yield arith.SelectOp(value(i1), value(kind), value(kind))


def accesses() -> Made:
    """Loads, stores and overrides of as many cells as a vector has."""
    for kind, count, masked in product(CELLS, (1, 2, 4), (False, True)):
        mask = value(i1) if masked else None
        if count * CELL_BYTES[kind] > 16:
            continue
        kinds, cells = [kind] * count, [value(kind) for _ in range(count)]
        for place in (FIELD, SHARED):
            yield simt.LoadOp(value(place), None, 2, kinds, mask)
            yield simt.StoreOp(cells, value(place), None, 2, mask)
            yield simt.OverrideOp(cells, value(place), None, 2, value(i1))
        yield simt.SendOp(cells, value(CLUSTER), None, 2, mask, value(CLUSTER), value(i32))
        yield simt.PrefetchOp(value(FIELD), None, 2, kind, mask)


def messages() -> Made:
    for kind, number in product((f32, f64, i32, i64), (None, value(i32))):
        cells = [value(kind), value(kind)]
        yield simt.PostOp(cells, value(FIELD), None, [0, 2], number)
        yield simt.TakeOp(value(FIELD), None, [0, 2], number, [kind, kind])


def pointers() -> Made:
    for place, index in product((FIELD, SHARED, CLUSTER), (i32, i64)):
        dynamic = -(1 << 31)
        yield llvm.GEPOp(value(place), [dynamic], f64, [value(index)], place)


def body_with(*kinds: Attribute) -> Region:
    """A region that yields its arguments."""
    block = Block(arg_types=kinds)
    block.add_op(scf.YieldOp(*block.args[1:]))
    return Region(block)


def loops() -> Made:
    for kind, carried in product((i32, i64, IndexType()), NUMBERS):
        lower, upper, step = (value(kind) for _ in range(3))
        yield scf.ForOp(lower, upper, step, [value(carried)], body_with(kind, carried))


def choosing(kind: Attribute) -> Region:
    """A region that yields one of two values."""
    op = arith.SelectOp(value(i1), value(kind), value(kind))
    return Region(Block([op, scf.YieldOp(op)]))


def branches() -> Made:
    for kind in REGISTERS:
        yield scf.IfOp(value(i1), [kind], choosing(kind), choosing(kind))
        detour = Region(Block([scf.YieldOp(value(kind))]))
        yield scf.IfOp(value(i1), [kind], detour, choosing(kind))
    yield scf.IfOp(value(i1), [], Region(Block([scf.YieldOp()])))


def one_kind(make: Callable[[Attribute], Operation], *kinds: Attribute) -> Callable[[], Made]:
    """An operation of each of some types."""
    return lambda: (make(kind) for kind in kinds)


def each(make: Callable[[*Given], Operation], *arguments: tuple[*Given]) -> Callable[[], Made]:
    """An operation made of each of some arguments."""
    return lambda: (make(*given) for given in arguments)


def once(make: Callable[[], Operation]) -> Callable[[], Made]:
    """An operation with a single form."""
    return lambda: iter([make()])


FULL = value(i32)
ADDRESSES = ((0,), (128,))

SPECIAL: dict[type[Operation], Callable[[], Made]] = {
    arith.ConstantOp: constants,
    arith.ExtFOp: extensions,
    arith.TruncFOp: truncations,
    RoundOp: one_kind(lambda k: RoundOp(value(f32), k), *STORED_FLOATS),
    arith.ExtUIOp: each(lambda a, b: arith.ExtUIOp(value(a), b), (i1, i32), (i1, i64), (i32, i64)),
    arith.FPToSIOp: each(
        lambda a, b: arith.FPToSIOp(value(a), b), *product((f32, f64), (i32, i64))
    ),
    arith.FPToUIOp: each(
        lambda a, b: arith.FPToUIOp(value(a), b), *product((f32, f64), (i32, i64))
    ),
    xmath.RoundOp: one_kind(lambda k: xmath.RoundOp(value(k)), f32, f64),
    xmath.CtPopOp: one_kind(lambda k: xmath.CtPopOp(value(k)), i32, i64),
    xmath.CountLeadingZerosOp: one_kind(lambda k: xmath.CountLeadingZerosOp(value(k)), i32, i64),
    xmath.CountTrailingZerosOp: one_kind(lambda k: xmath.CountTrailingZerosOp(value(k)), i32, i64),
    arith.UIToFPOp: each(
        lambda a, b: arith.UIToFPOp(value(a), b), *product((i1, i32, i64), (f32, f64))
    ),
    arith.CmpiOp: lambda: (op for op in comparisons() if isinstance(op, arith.CmpiOp)),
    arith.CmpfOp: lambda: (op for op in comparisons() if isinstance(op, arith.CmpfOp)),
    arith.SelectOp: choices,
    arith.BitcastOp: each(
        lambda a, b: arith.BitcastOp(value(a), b), (f32, i32), (i32, f32), (f64, i64), (i64, f64)
    ),
    arith.MaximumfOp: one_kind(lambda k: arith.MaximumfOp(value(k), value(k)), f32, f64),
    arith.MinimumfOp: one_kind(lambda k: arith.MinimumfOp(value(k), value(k)), f32, f64),
    xmath.RsqrtOp: one_kind(lambda k: xmath.RsqrtOp(value(k)), f32, f64),
    xmath.CopySignOp: one_kind(lambda k: xmath.CopySignOp(value(k), value(k)), f32, f64),
    simt.UnsetOp: one_kind(simt.UnsetOp, *CELLS),
    simt.SplitOp: one_kind(lambda k: simt.SplitOp(value(k)), f64, i64),
    simt.JoinOp: one_kind(lambda k: simt.JoinOp(value(i32), value(i32), k), f64, i64),
    **{kind: once(kind) for kind in SPECIAL_REGISTERS},
    scf.ForOp: loops,
    scf.IfOp: branches,
    llvm.ReturnOp: once(llvm.ReturnOp),
    llvm.GEPOp: pointers,
    simt.LoadOp: lambda: (op for op in accesses() if isinstance(op, simt.LoadOp)),
    simt.StoreOp: lambda: (op for op in accesses() if isinstance(op, simt.StoreOp)),
    simt.OverrideOp: lambda: (op for op in accesses() if isinstance(op, simt.OverrideOp)),
    simt.PrefetchOp: lambda: (op for op in accesses() if isinstance(op, simt.PrefetchOp)),
    simt.SendOp: lambda: (op for op in accesses() if isinstance(op, simt.SendOp)),
    simt.SharedOp: each(lambda at: simt.SharedOp(at, SHARED), *ADDRESSES),
    simt.PostOp: lambda: (op for op in messages() if isinstance(op, simt.PostOp)),
    simt.TakeOp: lambda: (op for op in messages() if isinstance(op, simt.TakeOp)),
    simt.TileBarrierOp: once(lambda: simt.TileBarrierOp(value(FIELD), None, value(i32), 4)),
    simt.LaunchesEndedOp: once(lambda: simt.LaunchesEndedOp(value(FIELD))),
    simt.EndLaunchOp: once(lambda: simt.EndLaunchOp(value(FIELD), value(i32))),
    nvvm.CpAsyncOp: each(
        lambda size, taken: nvvm.CpAsyncOp(value(SHARED), value(FIELD), size, taken),
        *product((4, 8, 16), (None, value(i32))),
    ),
    nvvm.CpAsyncCommitGroupOp: once(nvvm.CpAsyncCommitGroupOp),
    nvvm.CpAsyncWaitGroupOp: each(nvvm.CpAsyncWaitGroupOp, (2,)),
    nvvm.ShflSyncOp: each(
        lambda word: nvvm.ShflSyncOp(FULL, value(i32), value(i32), value(i32), word),
        *((word,) for word in nvvm.ShflKindAttr.WORDS),
    ),
    nvvm.ReduxSyncOp: each(
        lambda word: nvvm.ReduxSyncOp(value(i32), FULL, word),
        *((word,) for word in nvvm.ReduxKindAttr.WORDS),
    ),
    nvvm.VoteSyncOp: each(
        lambda word: nvvm.VoteSyncOp(FULL, value(i1), word),
        *((word,) for word in nvvm.VoteKindAttr.WORDS),
    ),
    nvvm.BarrierOp: once(nvvm.BarrierOp),
    nvvm.WarpSyncOp: once(lambda: nvvm.WarpSyncOp(FULL)),
    nvvm.MbarrierInitOp: once(lambda: nvvm.MbarrierInitOp(value(SHARED), value(i32))),
    nvvm.MbarrierArriveOp: once(lambda: nvvm.MbarrierArriveOp(value(SHARED))),
    nvvm.MbarrierArriveExpectTxOp: once(
        lambda: nvvm.MbarrierArriveExpectTxOp(value(SHARED), value(i32))
    ),
    nvvm.MbarrierTryWaitParityOp: once(
        lambda: nvvm.MbarrierTryWaitParityOp(value(SHARED), value(i32), value(i32))
    ),
    nvvm.MapaOp: once(lambda: nvvm.MapaOp(value(SHARED), value(i32), CLUSTER)),
    nvvm.ClusterArriveOp: once(nvvm.ClusterArriveOp),
    nvvm.ClusterWaitOp: once(nvvm.ClusterWaitOp),
    nvvm.FenceMbarrierInitOp: once(nvvm.FenceMbarrierInitOp),
}
"""Operations with a printer function each, in every form."""


def test_every_operation_of_the_printer_has_its_forms_in_the_table():
    assert SPECIAL.keys() | GENERIC == TABLE.keys()


def name_of(kind: type[Operation]) -> str:
    return kind.name


def printed(op: Operation, *, bounded: bool) -> str:
    """A kernel with an operation on operands in registers."""
    w = Writer(TABLE)
    w.report = "%rd0" if bounded else None
    for inner in op.walk():
        for operand in inner.operands:
            if operand not in w.names and isinstance(operand.owner, Block):
                w.define(operand)
    w.print_op(op)
    registers = "\n".join(
        f"\t.reg .{kind} {prefix}<{w.counts[prefix] + 1}>;" for prefix, kind in DECLARED.items()
    )
    body = "\n".join(w.lines)
    return (
        ".version 8.1\n.target sm_90\n.address_size 64\n.extern .shared .align 128 .b8 "
        f"{SHARED_SYMBOL}[];\n{device_functions(w.functions, 'sm_90')}.visible .entry "
        f"k()\n{{\n{registers}\n{body}\n}}\n"
    )


@pytest.mark.parametrize("bounded", [False, True], ids=["waits", "bounded-waits"])
@pytest.mark.parametrize("kind", sorted(TABLE, key=name_of), ids=name_of)
def test_the_executor_takes_every_form_that_the_assembler_takes(
    kind: type[Operation], bounded: bool
):
    """Text refused by the executor is refused by the assembler, too."""
    known = 0
    for op in SPECIAL[kind]() if kind in SPECIAL else generic(kind):
        text = printed(op, bounded=bounded)
        try:
            Program(parse_module(text)["k"])
            known += 1
        except SimtError:
            with pytest.raises(AssemblerError):
                assemble(text, "sm_90")
    assert known
