"""The stage by which a kernel writes a field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import f32, f64
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
)
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import (
    cell_type,
    element_type,
    field_bounds,
)
from timetile.dialects.temporal.reduce import Reduction, ReductionAttr
from timetile.dialects.tile.load import verify_reader
from timetile.dialects.tile.queues import QueueType
from timetile.dialects.tile.stages import (
    NeededCells,
    in_kernel,
    queue_lag,
    queue_type,
    verify_rank,
)

if TYPE_CHECKING:
    from timetile.dialects.tile.kernel import KernelOp


class StoreEffects(MemoryEffect):
    """A store writes the field."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.WRITE, cast(StoreOp, op).field)}


@irdl_op_definition
class StoreOp(IRDLOperation):
    """
    Write the tile's own cells of the newest plane inside the kernel's bounds and the field, and
    inside the box after `in`, if any.

    With `number` the field's first cells take numbers in place of cells: each warp of all tiles
    writes the greatest, or the least, of its cells. All other cells of the field stay.

    Example: `tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,9]xf64>`
    """

    name = "tile.store"

    queue = operand_def(QueueType)
    field = operand_def(FieldType)
    box = opt_prop_def(StencilBoundsAttr)
    number = opt_prop_def(ReductionAttr)

    assembly_format = (
        "$queue `to` $field (`in` $box^)? (`number` $number^)? attr-dict `:` type($queue) `,` "
        "type($field)"
    )
    traits = lazy_traits_def(lambda: (in_kernel(), StoreEffects()))

    def __init__(
        self,
        queue: SSAValue,
        field: SSAValue,
        box: StencilBoundsAttr | None = None,
        number: ReductionAttr | None = None,
    ):
        super().__init__(operands=[queue, field], properties={"box": box, "number": number})

    @property
    def home(self) -> None:
        """A store keeps nothing."""
        return None

    @property
    def lag(self) -> int:
        """The lag of the stored queue, in stream steps."""
        return queue_lag(self.queue)

    @property
    def cells(self) -> CellBox:
        """The cells written, in the program's coordinates."""
        kernel = cast("KernelOp", self.parent_op())
        cells = CellBox.of(kernel.bounds) & CellBox.of(field_bounds(self.field))
        return cells if self.box is None else cells & CellBox.of(self.box)

    def needs(self, made: NeededCells) -> Iterator[tuple[SSAValue, CellBox]]:
        """The queue, with the cells needed."""
        yield self.queue, self.cells

    def verify_(self) -> None:
        verify_reader(self, self.queue)
        kernel = cast("KernelOp", self.parent_op())
        verify_rank(kernel, self.field)
        bounds, field = CellBox.of(kernel.bounds), CellBox.of(field_bounds(self.field))
        if (bounds & field).is_empty:
            raise VerifyException(
                f"the store has no cell: bounds {bounds} and the field's {field} have no cell in "
                "common"
            )
        self.verify_box(bounds & field)
        self.verify_number()
        if cell_type(self.field) != queue_type(self.queue).element:
            raise VerifyException(
                f"queue of {queue_type(self.queue).element} stored to a field of "
                f"{element_type(self.field)}"
            )

    def verify_number(self) -> None:
        """VerifyException for numbers that depend on an order, or of a part of the cells."""
        if self.number is None:
            return
        if self.number.data is Reduction.TOTAL or element_type(self.field) not in (f32, f64):
            raise VerifyException(
                "numbers of a kernel are maximum or minimum of f32 or f64: a sum has a fixed order"
            )
        if self.box is not None:
            raise VerifyException("numbers of a kernel are made of all cells, and have no box")

    def verify_box(self, cells: CellBox) -> None:
        """VerifyException for a box outside the cells of the bounds and the field."""
        if self.box is None:
            return
        kernel = cast("KernelOp", self.parent_op())
        box = CellBox.of(self.box)
        if len(box.lower) != kernel.rank:
            raise VerifyException(f"box of rank {len(box.lower)} in a kernel of rank {kernel.rank}")
        if box.is_empty or box not in cells:
            raise VerifyException(
                f"the box of a store has cells of the bounds and of the field only, {cells}, got "
                f"{box}"
            )
