"""Memory allocated by a program: made once for each place of allocation, with unknown cells until
written.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.dialects import gpu, memref, scf, stencil
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Attribute, Operation

from timetile.dialects.boxes import sizes_of
from timetile.dialects.verified import memref_type
from timetile.passes.diagnostics import refuse
from timetile.passes.raising.names import names_of
from timetile.runtime.arithmetic.cells import DTYPES

ALLOCATIONS = (memref.AllocOp, memref.AllocaOp, gpu.AllocOp, stencil.AllocOp)
FREED = (memref.DeallocOp, gpu.DeallocOp)
"""Operations that free memory. Nothing is done, as the place of allocation keeps its memory."""


def allocated(op: Operation) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """
    The shape and the type of cells of an allocation. Raises CompileError for an unknown shape or
    type.
    """
    # Runs ask again and again: no constraint of the type is made anew.
    found = op.results[0].type
    if isinstance(found, FieldType):
        kind = cast("FieldType[Attribute]", found)
        if not isinstance(kind.bounds, StencilBoundsAttr):
            refuse(
                op,
                f"the operation allocates {kind} of unknown extents; give the field static bounds",
            )
        shape = sizes_of(kind.bounds)
    else:
        kind = memref_type(op.results[0])
        shape = kind.get_shape()
        if DYNAMIC_INDEX in shape:
            refuse(
                op,
                f"the operation allocates {kind} of unknown extents; give the memref static "
                "extents",
            )
    if kind.element_type not in DTYPES:
        refuse(
            op,
            f"the operation allocates cells of {kind.element_type}; use f64, f32, i64, i32, "
            "i1 or index",
        )
    return shape, np.dtype(DTYPES[kind.element_type])


def check_allocation(op: Operation) -> None:
    """
    Raise CompileError for an impossible allocation, or an allocation used in the next step of a
    loop.
    """
    allocated(op)
    uses = (use.operation for name in names_of(op.results[0]) for use in name.uses)
    if any(isinstance(user, scf.YieldOp) for user in uses):
        refuse(
            op, "a loop carries memory allocated in the loop; allocate the memory before the loop"
        )
