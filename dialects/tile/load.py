"""The stage by which a kernel reads a field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import (
    IntAttr,
)
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
)
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.boxes import CellBox
from timetile.dialects.directives import AnchoredValue, Number, OptionalValue
from timetile.dialects.making import make_segmented, with_known_segments
from timetile.dialects.syntax import (
    INTEGERS,
    cell_type,
    decode_integers,
    element_type,
    encode_integers,
    field_bounds,
)
from timetile.dialects.tile.homes import CopiesAttr, MemoryAttr, RegistersAttr, SharedAttr
from timetile.dialects.tile.queues import QueueType, made_queue_type
from timetile.dialects.tile.stages import (
    NeededCells,
    in_kernel,
    queue_lag,
    queue_type,
    verify_rank,
)

if TYPE_CHECKING:
    from timetile.dialects.tile.kernel import KernelOp


class LoadEffects(MemoryEffect):
    """A load reads the operands."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.READ, f) for f in op.operands}


@with_known_segments
@irdl_op_definition
class LoadOp(IRDLOperation):
    """
    The plane of a field at the result's lag: inside the kernel's bounds from `data`, outside from
    `halo`, fetched `ahead` steps early. With `at`, each cell of the plane is the field's cell at an
    offset (cells, per axis): readers tap offset 0 and read memory, as in `tile.load %src at [0, -8]
    home #tile.memory`. A field of fewer axes has cells `along` some axes of the domain, and the
    field's cell counts for all coordinates along the others: readers read memory, as in `tile.load
    %w along [1] home #tile.memory`.

    Example: `%u = tile.load %src halo %A ahead 3 : !tile.queue<f64, lag 0>`
    """

    name = "tile.load"

    data = opt_operand_def(FieldType)
    halo = opt_operand_def(FieldType)
    along = opt_prop_def(INTEGERS)
    at = opt_prop_def(INTEGERS)
    ahead = opt_prop_def(IntAttr)
    home = opt_prop_def(RegistersAttr | SharedAttr | CopiesAttr | MemoryAttr)
    result = result_def(QueueType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = lazy_traits_def(lambda: (in_kernel(), LoadEffects()))

    custom_directives = (AnchoredValue, Number, OptionalValue)
    assembly_format = (
        "custom<OptionalValue>($data, type($data)) "
        "(`halo` custom<AnchoredValue>($halo, type($halo))^)? (`along` $along^)? "
        "(`at` $at^)? "
        "(`ahead` custom<Number>($ahead)^)? (`home` $home^)? "
        "attr-dict-with-keyword `:` type($result)"
    )

    def __init__(
        self,
        data: SSAValue | None,
        halo: SSAValue | None,
        lag: int,
        at: Sequence[int] | None = None,
        along: Sequence[int] | None = None,
    ):
        fields = [field for field in (data, halo) if field is not None]
        given = {
            "at": None if at is None else encode_integers(at),
            "along": None if along is None else encode_integers(along),
        }
        make_segmented(self, [data, halo], given, [made_queue_type(cell_type(fields[0]), lag)])

    @property
    def field(self) -> SSAValue:
        """The field read: the data, or the halo of a load without data."""
        return self.operands[0]

    @property
    def offset(self) -> tuple[int, ...] | None:
        """
        The offset of the field's cells (cells, per axis); None for a load of the plane at offset 0.
        """
        return None if self.at is None else decode_integers(self.at)

    @property
    def axes(self) -> tuple[int, ...] | None:
        """The axes that a field of fewer axes has; None if it has all."""
        return None if self.along is None else decode_integers(self.along)

    @property
    def is_read_at_use(self) -> bool:
        """Readers read cells of the data from memory: the load has an offset, or fewer axes."""
        return self.at is not None or self.along is not None

    @property
    def keeps_no_plane(self) -> bool:
        """Readers read memory: the load is of a halo, or is read at use."""
        return self.data is None or self.is_read_at_use

    def cells_read(self, needed: CellBox) -> CellBox:
        """The cells of the field behind some cells of the queue, along the field's own axes."""
        read = needed if self.offset is None else needed.moved(self.offset)
        return read if self.axes is None else read.along(self.axes)

    @property
    def lag(self) -> int:
        """The lag of the result, in stream steps."""
        return queue_lag(self.results[0])

    @property
    def planes_ahead(self) -> int:
        """How many steps early a plane is fetched."""
        return 0 if self.ahead is None else self.ahead.data

    def needs(self, made: NeededCells) -> Iterator[tuple[SSAValue, CellBox]]:
        """Nothing: a load reads no queue."""
        return iter(())

    def verify_(self) -> None:
        if self.data is None and self.halo is None:
            raise VerifyException("a load has a data field, a halo field or both")
        if self.data is not None and self.halo is not None:
            data, halo = CellBox.of(field_bounds(self.data)), CellBox.of(field_bounds(self.halo))
            if data != halo:
                raise VerifyException(f"data and halo have the same bounds, got {data} and {halo}")
        if self.axes is not None:
            self.verify_axes(self.axes)
        for field in self.operands:
            if self.axes is None:
                verify_rank(cast("KernelOp", self.parent_op()), field)
            if cell_type(field) != queue_type(self.result).element:
                raise VerifyException(
                    f"field of {element_type(field)} loaded as {queue_type(self.result).element}"
                )
        if isinstance(self.home, CopiesAttr) and (self.halo is not None or not self.planes_ahead):
            raise VerifyException(
                "a load that lives in copies has no halo, and is fetched one or more steps early"
            )
        if self.planes_ahead < 0:
            raise VerifyException(
                f"a plane is fetched 0 or more steps early, got {self.planes_ahead}"
            )
        if self.offset is not None:
            self.verify_offset(self.offset)

    def verify_axes(self, axes: tuple[int, ...]) -> None:
        """VerifyException unless a load of fewer axes is of data with these axes, in memory."""
        kernel = cast("KernelOp", self.parent_op())
        if list(axes) != sorted(set(axes)) or not all(0 <= axis < kernel.rank for axis in axes):
            raise VerifyException(
                f"along names increasing axes of the {kernel.rank} of the domain, got {list(axes)}"
            )
        if self.data is None or self.halo is not None or self.planes_ahead:
            raise VerifyException("a load with along has a data field, no halo, and none ahead")
        if (rank := len(field_bounds(self.data).lb)) != len(axes):
            raise VerifyException(f"a load along {len(axes)} axes of a field of rank {rank}")
        if not isinstance(self.home, MemoryAttr | None):
            raise VerifyException(f"a load with along lives in memory, got {self.home}")

    def verify_offset(self, offset: tuple[int, ...]) -> None:
        """
        VerifyException unless a load with an offset is of data, lives in memory, and is tapped at
        offset 0.
        """
        kernel = cast("KernelOp", self.parent_op())
        if len(offset) != kernel.rank:
            raise VerifyException(f"at has {len(offset)} axes and the domain {kernel.rank}")
        if self.data is None or self.halo is not None or self.planes_ahead:
            raise VerifyException("a load with at has a data field, no halo, and none ahead")
        if not isinstance(self.home, MemoryAttr | None):
            raise VerifyException(f"a load with at lives in memory, got {self.home}")


def verify_reader(reader: Operation, queue: SSAValue) -> None:
    """VerifyException for a load with an offset, read by another operation than an apply."""
    if isinstance(queue.owner, LoadOp) and queue.owner.is_read_at_use:
        raise VerifyException(f"a load with at or along is read by tile.apply, got {reader.name}")
