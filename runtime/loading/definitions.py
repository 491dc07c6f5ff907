"""A value is defined above its uses: xDSL takes programs with other values, too."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Region, SSAValue

from timetile.passes.diagnostics import refuse


def check_definitions(function: FuncOp) -> None:
    """Raise CompileError for a use of a value above its definition, or outside of its region."""
    check_region(function.body, set())


def check_region(region: Region, known: set[SSAValue]) -> None:
    """Check a region, with the values known around."""
    blocks, own = list(region.blocks), list[SSAValue]()
    for block in blocks:
        own += block.args
        if len(blocks) > 1:
            # The order of blocks is not the order of a run.
            own += [result for op in block.ops for result in op.results]
    known.update(own)
    for op in (op for block in blocks for op in block.ops):
        if unknown := next((value for value in op.operands if value not in known), None):
            name = f"%{unknown.name_hint}" if unknown.name_hint else "a value"
            refuse(
                op,
                f"{name} is used above its definition, or outside of the region of the definition; "
                "define each value above its uses",
            )
        for inner in op.regions:
            check_region(inner, known)
        known.update(op.results)
        own += op.results
    known.difference_update(own)
