"""
Points of an update on a CPU: the entries of the cells that a call of the update's function has
computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import PointKind, PointSet, UpdateOp
from timetile.lowering.cpu.builder import Builder


@dataclass
class PointCode:
    """
    The code for one list of an update: `pointers` to the first cells of fields, `step`, the row of
    the table, and `spans` of computed cells along the two outermost axes.
    """

    update: UpdateOp
    made: PointSet
    build: Builder
    pointers: Mapping[SSAValue, SSAValue]
    step: SSAValue
    spans: Sequence[tuple[SSAValue, SSAValue]]

    def emit(self) -> None:
        """Emit loops over rows of buckets and their entries, if the spans hold cells."""
        build, target = self.build, self.update.targets[self.made.target]
        bounds = field_bounds(target)
        self.kind, self.first = element_type(target), CellBox.of(self.made.bounds).lower
        # The field may be a part of the field that the list counts from.
        held = CellBox.of(bounds)
        self.moved = [first - low for first, low in zip(self.first, held.lower)]
        self.extents = held.extents
        self.layout = layout = self.made.layout
        rank = len(layout.shape)
        whole = [
            (build.int(low), build.int(high)) for low, high in zip(*self.update_box(), strict=True)
        ]
        self.cells = [*self.spans[:rank], *whole[len(self.spans) :]]
        rows = self.buckets(0)
        beside = self.buckets(1) if rank > 1 else None

        def row(place: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            start = build.times(place, build.int(layout.strides[0]))
            if beside is None:
                begin, end = start, build.plus(start, build.int(1))
            else:
                begin, end = (
                    build.plus(start, build.times(side, build.int(layout.strides[1])))
                    for side in beside
                )
            low, high = (self.number(self.made.places, 0, each) for each in (begin, end))
            build.loop(low, high, build.int(1), self.entry)
            return carried

        held = [build.compare("slt", low, high) for low, high in self.cells]
        some = held[0]
        for each in held[1:]:
            some = build.binary(llvm.AndOp, some, each)
        build.when(some, lambda: build.loop(*rows, build.int(1), row))

    def update_box(self) -> tuple[Sequence[int], Sequence[int]]:
        """The first cells and the ends of the update's box."""
        box = CellBox.of(self.update.box)
        return box.lower, box.upper

    def buckets(self, axis: int) -> tuple[SSAValue, SSAValue]:
        """The buckets with the computed cells along an axis: the first, and the end."""
        build, (low, high) = self.build, self.cells[axis]
        size, first = build.int(self.layout.buckets[axis]), build.int(self.first[axis])
        begin = build.binary(llvm.SDivOp, build.minus(low, first), size)
        last = build.minus(build.minus(high, first), build.int(1))
        return begin, build.plus(build.binary(llvm.SDivOp, last, size), build.int(1))

    def address(self, field: SSAValue, at: SSAValue, kind: Attribute) -> SSAValue:
        """The address of a field's number at a place."""
        return self.build.moved(self.pointers[field], at, kind)

    def number(self, field: SSAValue, part: int, at: SSAValue) -> SSAValue:
        """An integer of a part of the list."""
        build = self.build
        pointer = self.address(field, build.plus(build.int(part), at), i32)
        return build.add(llvm.SExtOp(build.loaded(pointer, i32), i64)).res

    def entry(self, number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """One entry, if its cell is among the computed cells."""
        build, inside, place = self.build, list[SSAValue](), self.build.int(0)
        for axis, (low, high) in enumerate(self.cells):
            along = self.number(self.made.places, self.layout.coordinates(axis), number)
            own = build.plus(along, build.int(self.moved[axis])) if self.moved[axis] else along
            place = build.plus(build.times(place, build.int(self.extents[axis])), own)
            at = build.plus(along, build.int(self.first[axis]))
            inside += [build.compare("sge", at, low), build.compare("slt", at, high)]
        every = inside[0]
        for each in inside[1:]:
            every = build.binary(llvm.AndOp, every, each)
        build.when(every, lambda: self.use(number, place))
        return carried

    def use(self, number: SSAValue, place: SSAValue) -> None:
        """Add a value to a cell, or note the cell."""
        build, made = self.build, self.made
        cell = self.address(self.update.targets[made.target], place, self.kind)
        weight = build.loaded(self.address(made.weights, number, self.kind), self.kind)
        row = build.times(self.step, build.int(made.columns))
        if made.kind is PointKind.SAMPLE:
            product = build.binary(llvm.FMulOp, weight, build.loaded(cell, self.kind))
            build.store(product, self.address(made.table, build.plus(row, number), self.kind))
            return
        column = self.number(made.places, self.layout.columns, number)
        value = self.address(made.table, build.plus(row, column), self.kind)
        product = build.binary(llvm.FMulOp, weight, build.loaded(value, self.kind))
        build.store(build.binary(llvm.FAddOp, build.loaded(cell, self.kind), product), cell)
