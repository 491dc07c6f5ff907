"""
Where a value of a thread is needed: the masks of the stores and selections that the value enters.

Lanes outside the field compute with missing divisors, and never store the results. For the choice
of a branch, `expand-division` ignores these lanes. Rows stored by way of shared memory (FP64) have
no mask, and count as needed by every lane.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from timetile.dialects import simt
from timetile.lowering.tile_to_gpu.cells import is_arithmetic

LaneGuards = tuple[SSAValue, ...]
"""Masks, each once: a value is needed at most where one of the masks is on."""

MOST_GUARDS = 8
"""Most masks of a value: each costs an instruction."""


def guards_of(value: SSAValue, block: Block) -> LaneGuards | None:
    """
    Masks of the lanes that need a value. Each path from the value must end at a store or a
    selection under a mask from outside the block; otherwise None, as every lane may need the value.
    """
    # In the order of the code: the emitted code must not depend on addresses in memory.
    masks: dict[SSAValue, None] = {}
    seen, left = {value}, [value]
    while left:
        for use in left.pop().uses:
            if (mask := mask_of(use.operation, use.index)) is not None:
                outer = made_outside(mask, block)
                if outer is None or len(masks) == MOST_GUARDS:
                    return None
                masks[outer] = None
            elif is_arithmetic(use.operation):
                reached = [r for r in use.operation.results if r not in seen]
                seen.update(reached)
                left += reached
            else:
                return None
    return tuple(masks) or None


def mask_of(op: Operation, place: int) -> SSAValue | None:
    """The mask under which an operation needs the operand at a place."""
    match op:
        case simt.StoreOp(mask=mask) if place < len(op.cells):
            return mask
        case arith.SelectOp(cond=mask) if place == 1:
            return mask
        case _:
            return None


def made_outside(mask: SSAValue, block: Block) -> SSAValue | None:
    """The mask, or a part of a conjunction of masks, made in a block around the block."""
    owner = mask.owner
    home = owner if isinstance(owner, Block) else owner.parent
    if home is not None and home in blocks_around(block):
        return mask
    if not isinstance(owner, arith.AndIOp):
        return None
    parts = (made_outside(operand, block) for operand in owner.operands)
    return next((part for part in parts if part is not None), None)


def blocks_around(block: Block) -> Iterator[Block]:
    """The blocks that hold a block, the innermost first: their masks are known in the block."""
    around = block.parent_block()
    while around is not None:
        yield around
        around = around.parent_block()
