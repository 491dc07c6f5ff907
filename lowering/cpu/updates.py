"""
An update as one function: a nest of loops over spans of the two outermost axes and all of the
others.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, UnitAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from timetile.dialects.series import number_type
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import SweepOp, UpdateOp
from timetile.lowering.arguments import fields_of, scalars_of
from timetile.lowering.cpu.builder import Builder, llvm_type
from timetile.lowering.cpu.cells import lower_operation
from timetile.lowering.cpu.points import PointCode
from timetile.lowering.cpu.stored_cells import loaded_cell, memory_type, store_cell
from timetile.passes.analysis.skews import extent_of
from timetile.passes.raising.narrow_fields import read_field

POINTER = llvm.LLVMPointerType()


def strides(bounds: StencilBoundsAttr) -> list[int]:
    """The number of cells between neighbours along each axis of a field with some bounds."""
    found = [1]
    for low, high in reversed(list(zip(bounds.lb, bounds.ub))[1:]):
        found.insert(0, found[0] * (high - low))
    return found


def strides_of(field: SSAValue) -> list[int]:
    """
    The number of cells between neighbours along each axis of a field: 0 along the missing axes of a
    field of fewer axes read in place.
    """
    bounds, memory = field_bounds(field), read_field(field)
    if memory.axes is None:
        return strides(bounds)
    found = [0] * len(bounds.lb)
    for axis, stride in zip(memory.axes, strides(field_bounds(memory.field))):
        found[axis] = stride
    return found


def distance(field: SSAValue, cell: Sequence[int]) -> int:
    """How many cells lie between the first cell of a field and the cell at some coordinates."""
    steps = zip(strides_of(field), cell, field_bounds(field).lb)
    return sum(stride * (place - low) for stride, place, low in steps)


def function_of(
    name: str, kinds: Sequence[Attribute], linkage: str = "external", apart: int = 0
) -> tuple[llvm.FuncOp, Block]:
    """
    A function without a result, and the first block of the function. The first `apart` arguments do
    not alias.
    """
    entry = Block(arg_types=kinds)
    alone = DictionaryAttr({"llvm.noalias": UnitAttr()})
    attributes = [alone if k < apart else DictionaryAttr({}) for k in range(len(kinds))]
    function = llvm.FuncOp(
        name,
        llvm.LLVMFunctionType(kinds),
        llvm.LinkageAttr(linkage),
        body=Region(entry),
        other_props={"arg_attrs": ArrayAttr(attributes)},
    )
    return function, entry


class CellCode:
    """
    The code of a cell of an update or a sweep: taps, arithmetic and stores. `given` are pointers to
    the first cells of the fields, then the scalars.
    """

    def __init__(
        self, update: UpdateOp | SweepOp, cell: FuncOp, build: Builder, given: Sequence[SSAValue]
    ):
        self.update, self.cell, self.build = update, cell, build
        fields, scalars = fields_of(update), scalars_of(update)
        self.pointers = dict(zip(fields, given))
        self.scalars = dict(zip(scalars, given[len(fields) :]))
        self.places: list[SSAValue] = []
        """The coordinates of the cell, axis by axis."""
        self.corners: dict[SSAValue, SSAValue] = {}
        """Where the cell lies in each field."""
        self.offsets: dict[tuple[int, ...], SSAValue] = {}

    def one_cell(self) -> None:
        """Emit all taps, the arithmetic of the cell, and all results."""
        update, values = self.update, list[SSAValue]()
        for tap in update.tap_list:
            source = update.sources[tap.operand]
            address = self.address(source, tap.offset)
            values.append(loaded_cell(self.build, address, element_type(source)))
        values += [self.scalars[scalar] for scalar in update.scalars]
        values += [self.places[axis] for axis in update.index_axes]
        results = self.arithmetic(values)
        for target, result in zip(update.targets, results):
            address = self.address(target, (0,) * update.rank)
            store_cell(self.build, result, address, element_type(target))

    def arithmetic(self, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """The results of the cell function for some arguments."""
        block = self.cell.body.block
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments))
        for op in block.ops:
            if isinstance(op, ReturnOp):
                return [values[v] for v in op.operands]
            values[op.results[0]] = lower_operation(
                self.build, op, [values[v] for v in op.operands]
            )
        raise AssertionError("a cell function ends with a return")

    def address(self, field: SSAValue, offset: Sequence[int]) -> SSAValue:
        """The address of a field's cell at an offset."""
        kind = memory_type(element_type(field))
        if field not in self.corners:
            pointer, place = self.pointers[field], self.offset(strides_of(field))
            self.corners[field] = self.build.moved(pointer, place, kind)
        # Constant offsets are added last: addresses of neighbours then differ by a constant.
        origin = tuple(offset)
        cells = self.build.int(distance(field, origin))
        return self.build.moved(self.corners[field], cells, kind)

    def offset(self, steps: Sequence[int]) -> SSAValue:
        """The sum of coordinate times stride over all axes."""
        key = tuple(steps)
        if key not in self.offsets:
            build = self.build
            # Cells of a row are adjacent; a field without the row's axis has one cell.
            total = self.places[-1] if steps[-1] else build.int(0)
            for place, step in zip(self.places[:-1], steps):
                total = build.plus(build.times(place, build.int(step)), total)
            self.offsets[key] = total
        return self.offsets[key]


class UpdateFunction(CellCode):
    """
    Builds the function of an update. The arguments are the fields (pointers to first cells), the
    scalars, and start and end of spans of the two outermost axes.
    """

    def __init__(self, update: UpdateOp, cell: FuncOp, name: str):
        fields, scalars = fields_of(update), scalars_of(update)
        kinds = [POINTER for _ in fields] + [llvm_type(number_type(s)) for s in scalars] + [i64] * 4
        self.function, entry = function_of(name, kinds, "internal", len(fields))
        given, (low, high, second_low, second_high) = entry.args[:-4], entry.args[-4:]
        super().__init__(update, cell, Builder(self.function.body), given)
        self.own = update
        self.spans = ((low, high), (second_low, second_high))

    def make(self) -> llvm.FuncOp:
        """The whole function."""
        if self.update.rank == 1:
            # The missing outer axis has a single cell: an empty span skips the row.
            self.build.when(self.build.compare("slt", *self.spans[1]), self.whole)
        else:
            self.whole()
        self.build.add(llvm.ReturnOp())
        return self.function

    def whole(self) -> None:
        """Emit all cells of the spans, and then their points, list by list."""
        self.nest(0)
        for made in self.own.point_sets:
            step, spans = self.scalars[self.own.points[0]], self.spans[: self.own.rank]
            PointCode(self.own, made, self.build, self.pointers, step, spans).emit()

    def span(self, axis: int) -> tuple[SSAValue, SSAValue]:
        """Start and end of the function's cells along an axis."""
        if axis < len(self.spans):
            return self.spans[axis]
        low, high = extent_of(self.update.box, axis)
        return self.build.int(low), self.build.int(high)

    def nest(self, axis: int) -> None:
        """Emit the loop of an axis, around the loops of later axes, or around the cell."""
        if axis == self.update.rank:
            self.one_cell()
            return

        def turn(place: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.places.append(place)
            self.nest(axis + 1)
            return carried

        self.build.loop(*self.span(axis), self.build.int(1), turn)
