"""
Verification of operations of equal form, in a process of many tests.

`OpDef.verify` of xDSL checks the declaration of an operation: types of operands and results,
properties and attributes, regions, and the number of successors. The ten thousand operations of a
kernel's code have a hundred forms, and tests verify the code after every pipeline. A form found
right is not checked again; a wrong form is checked, and refused, every time. Traits and verifiers
of operations look at the operations around, and always run.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import Operation
from xdsl.irdl import OpDef

CHECKED = OpDef.verify
"""xDSL's check of an operation by its definition."""

RIGHT: set[Hashable] = set()
"""Forms of operations found right."""


def form_of(definition: OpDef, op: Operation) -> Hashable:
    """All facts of an operation on which the declared constraints depend."""
    regions = tuple(
        (len(region.blocks), None if block is None else block.arg_types)
        for region in op.regions
        for block in [region.first_block]
    )
    return (
        id(definition),
        tuple([operand.type for operand in op.operands]),
        tuple([result.type for result in op.results]),
        tuple(op.properties.items()),
        tuple(op.attributes.items()),
        regions,
        len(op.successors),
    )


def verify_new_forms(self: OpDef, op: Operation) -> None:
    """Check an operation by its definition, unless its form is known to be right."""
    form = form_of(self, op)
    if form in RIGHT:
        for trait in self.traits:
            trait.verify(op)
        return
    CHECKED(self, op)
    RIGHT.add(form)
