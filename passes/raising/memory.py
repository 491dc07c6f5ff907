"""Memory of operations: names of memory, and writes."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, func, gpu, llvm, memref, scf, stencil
from xdsl.dialects.builtin import MemRefType, UnrealizedConversionCastOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import MemoryEffectKind, get_effects

from timetile.dialects.temporal import GatherOp, LoopOp, PointOp, SweepOp

ALIASES = (
    stencil.CastOp,
    stencil.ExternalLoadOp,
    UnrealizedConversionCastOp,
    memref.CastOp,
)
"""Operations that give memory another name."""

ANY_MEMORY = None
"""The memory written by an operation with unknown effects."""


def is_alias(op: object) -> bool:
    """Whether the operation is another name of its only operand's memory."""
    return isinstance(op, ALIASES) and len(op.operands) == len(op.results) == 1


def memory_of(field: SSAValue) -> SSAValue:
    """
    The first name of a field's memory: the value from which a field or memref was cast or loaded.
    For an LLVM descriptor of a memref, the inserted pointer.
    """
    while isinstance(owner := field.owner, Operation):
        if is_alias(owner):
            field = owner.operands[0]
        elif isinstance(owner, llvm.InsertValueOp):
            is_pointer = isinstance(owner.value.type, llvm.LLVMPointerType)
            field = owner.value if is_pointer else owner.container
        else:
            break
    return field


MemoryChoice = tuple[object, SSAValue | None]
"""What a name may be of, None for any memory, and the condition for that."""


def choices(field: SSAValue) -> list[MemoryChoice]:
    """
    The possible memory of a name, each with a condition: one for a plain name, two for a field
    picked by a condition, the fields at the start of a loop for a result or an argument of the
    loop, and any memory for a result of a call.
    """
    root = memory_of(field)
    owner = loop_around(root) or root.owner
    if isinstance(owner, arith.SelectOp):
        return [((owner.cond, True), owner.lhs), ((owner.cond, False), owner.rhs)]
    if isinstance(owner, scf.IfOp):
        place = owner.results.index(root)
        ends = [region.block.last_op for region in owner.regions]
        return [((owner, k), end.operands[place]) for k, end in enumerate(ends) if end is not None]
    if isinstance(owner, scf.ForOp | LoopOp):
        begins = owner.iter_args if isinstance(owner, scf.ForOp) else owner.buffers
        return [((owner, k), value) for k, value in enumerate(begins) if is_memory(value.type)]
    if isinstance(owner, func.CallOp):
        return [(owner, ANY_MEMORY)]
    return [(None, root)]


def loop_around(value: SSAValue) -> Operation | None:
    """The loop that carries an argument of a block; None for another value."""
    loop = value.block.parent_op() if isinstance(value, BlockArgument) else None
    return loop if isinstance(loop, scf.ForOp) else None


def take_turns(first: SSAValue, other: SSAValue) -> bool:
    """
    Whether two names are results, or arguments, of one loop with fields in turn: none is another.
    """
    loop = loop_around(first) or first.owner
    if first.owner is not other.owner or not isinstance(loop, scf.ForOp | LoopOp):
        return False
    if isinstance(loop, LoopOp):
        return True
    end = loop.body.block.last_op
    names = [memory_of(value) for value in loop.body.block.args if is_memory(value.type)]
    yielded = [memory_of(v) for v in end.operands if is_memory(v.type)] if end is not None else []
    return set(names) == set(yielded) and len(set(yielded)) == len(yielded)


def may_be_one(first: SSAValue | None, other: SSAValue | None) -> bool:
    """
    Whether two names may be of one memory: equal names, or picked names not parted by a condition.
    """
    if first is None or other is None:
        return True
    if take_turns(memory_of(first), memory_of(other)):
        return memory_of(first) is memory_of(other)
    mine, theirs = choices(first), choices(other)
    if len(mine) == len(theirs) == 1 and mine[0][0] is theirs[0][0] is None:
        return mine[0][1] is theirs[0][1]
    together = {when for when, _ in mine} == {when for when, _ in theirs}
    return any(
        may_be_one(a, b)
        for when, a in mine
        for other_when, b in theirs
        if not together or when == other_when
    )


def number_behind(pointer: SSAValue) -> Attribute | None:
    """
    The type of the number loaded from a function's pointer; None for a pointer with other uses.
    """
    if not isinstance(pointer, BlockArgument) or not isinstance(
        pointer.block.parent_op(), func.FuncOp
    ):
        return None
    loads = [use.operation for use in pointer.uses]
    kinds = {load.dereferenced_value.type for load in loads if isinstance(load, llvm.LoadOp)}
    whole = len(kinds) == 1 and all(isinstance(load, llvm.LoadOp) for load in loads)
    return kinds.pop() if whole else None


def is_memory(kind: Attribute) -> bool:
    """Values of the type name memory."""
    return isinstance(kind, stencil.FieldType | MemRefType | llvm.LLVMPointerType)


def name_fields_once(root: Operation) -> None:
    """Let `root` and its regions use the first of several casts of one memory to one type."""
    known: dict[tuple[SSAValue, Attribute], SSAValue] = {}
    inner = [op for region in root.regions for block in region.blocks for op in block.ops]
    for op in (root, *inner):
        for number, operand in enumerate(op.operands):
            memory = memory_of(operand)
            if memory is not operand:
                op.operands[number] = known.setdefault((memory, operand.type), operand)


def written_memory(op: Operation) -> list[SSAValue | None]:
    """The memory written by a host operation and its regions; None stands for any memory."""
    written: list[SSAValue | None] = []
    for inner in op.walk():
        if isinstance(inner, memref.StoreOp | memref.AtomicRMWOp):
            written.append(memory_of(inner.memref))
        elif isinstance(inner, stencil.StoreOp):
            written.append(memory_of(inner.field))
        elif isinstance(inner, stencil.ApplyOp):
            written += [memory_of(target) for target in inner.dest]
        elif isinstance(inner, memref.CopyOp):
            written.append(memory_of(inner.destination))
        elif isinstance(inner, gpu.MemcpyOp):
            written.append(memory_of(inner.dst))
        elif isinstance(inner, GatherOp):
            written.append(memory_of(inner.target))
        elif isinstance(inner, SweepOp):
            written += [memory_of(target) for target in inner.targets]
        elif isinstance(inner, PointOp):
            written.append(memory_of(inner.written))
        elif isinstance(inner, LoopOp):
            written += [memory_of(buffer) for buffer in inner.buffers]
            written += [memory_of(table) for table in inner.sampled]
        elif isinstance(inner, func.CallOp):
            written.append(ANY_MEMORY)
    return written


def is_never_written(field: SSAValue) -> bool:
    """No operation of the function may write the memory of a field."""
    root = memory_of(field)
    around = root.block.parent_op() if isinstance(root, BlockArgument) else root.owner.parent_op()
    if not isinstance(around, func.FuncOp):
        return False
    carried = [
        memory_of(value)
        for loop in around.walk()
        if isinstance(loop, scf.ForOp)
        for value in loop.iter_args
    ]
    written = [*written_memory(around), *carried]
    return not any(may_be_one(memory, root) for memory in written)


def is_pure(op: Operation) -> bool:
    """Whether the operation computes values without effects, from constant memory."""
    if is_alias(op) or isinstance(op, llvm.InsertValueOp | llvm.UndefOp | llvm.LoadOp):
        # A loaded pointer addresses constant numbers, and no operation stores to such memory.
        return True
    if op.name.startswith(("arith.", "math.")):
        return True
    if isinstance(op, memref.DeallocOp | gpu.DeallocOp):
        # Memory lives as long as the program: the raised program frees nothing.
        return True
    effects = get_effects(op)
    return effects is not None and all(e.kind == MemoryEffectKind.ALLOC for e in effects)


def erase_dead(values: Iterable[SSAValue]) -> None:
    """Erase the makers of values without a reader and without effects, and makers of operands."""
    for value in dict.fromkeys(values):
        owner = value.owner
        if not isinstance(owner, Operation) or owner.parent is None:
            continue
        if is_pure(owner) and all(result.first_use is None for result in owner.results):
            operands = list(owner.operands)
            Rewriter.erase_op(owner)
            erase_dead(operands)
