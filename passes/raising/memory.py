"""Memory of operations: names of memory, and writes."""

from __future__ import annotations

from xdsl.dialects import func, llvm, memref, scf, stencil
from xdsl.dialects.builtin import MemRefType, UnrealizedConversionCastOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.traits import MemoryEffectKind, get_effects

from timetile.dialects.temporal import GatherOp, LoopOp

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


def is_memory(kind: Attribute) -> bool:
    """Values of the type name memory."""
    return isinstance(kind, stencil.FieldType | MemRefType | llvm.LLVMPointerType)


def name_fields_once(root: Operation) -> None:
    """Of several casts of one memory to one type, make `root` and its regions use the first."""
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
        elif isinstance(inner, GatherOp):
            written.append(memory_of(inner.target))
        elif isinstance(inner, LoopOp):
            written += [memory_of(buffer) for buffer in inner.buffers]
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
    return ANY_MEMORY not in written and root not in written


def is_pure(op: Operation) -> bool:
    """Whether the operation computes values without effects, from constant memory."""
    if is_alias(op) or isinstance(op, llvm.InsertValueOp | llvm.UndefOp):
        return True
    if op.name.startswith(("arith.", "math.")):
        return True
    effects = get_effects(op)
    return effects is not None and all(e.kind == MemoryEffectKind.ALLOC for e in effects)
