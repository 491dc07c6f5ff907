"""Kernels: stages in the order of a stream step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, cast, get_args

from xdsl.dialects.builtin import (
    ArrayAttr,
    IntAttr,
    StringAttr,
)
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    NoTerminator,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import (
    field_bounds,
    parse_bounds,
)
from timetile.dialects.temporal.boundary import MIRRORS, BoundaryAttr, Kind, Side
from timetile.dialects.tile.apply import ApplyOp
from timetile.dialects.tile.exchange import ExchangeOp
from timetile.dialects.tile.layouts import LayoutAttr
from timetile.dialects.tile.load import LoadOp
from timetile.dialects.tile.roles import RoleAttr
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr, parse_schedule
from timetile.dialects.tile.stages import (
    NeededCells,
)
from timetile.dialects.tile.store import StoreOp
from timetile.dialects.tile.variants import VariantAttr

StageOp: TypeAlias = LoadOp | ApplyOp | ExchangeOp | StoreOp

STAGES: frozenset[type[Operation]] = frozenset(get_args(StageOp))
"""The classes of stages: looking one up is faster than four questions for instances."""
"""An operation of a kernel, run once per stream step."""


@irdl_op_definition
class KernelOp(IRDLOperation):
    """
    A kernel: for every tile, every chunk of planes and every stream step, the stages in order.

    `roles`: the role of each argument in the time loop. `steps`: time steps of a launch. `stream`:
    the streaming axis; without a streaming axis the whole tile is a plane. `bounds`: the cells
    written, in the program's coordinates. `beyond`: the boundary by which fields and levels go on
    outside the bounds, along axes without a kept side. `layout`: the threads of a tile. `variants`:
    the lowered copies of the stages. `occupancy`: blocks per multiprocessor. `schedule`: the
    schedule of the kernel's loop, with decisions of passes to come.

    Example:
    ```
    tile.kernel @heat(
        %src : !stencil.field<[-1,9]x[-1,9]xf64>, %dst : !stencil.field<[-1,9]x[-1,9]xf64>
    ) roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0
        bounds <[0, 0], [8, 8]> {
      %u = tile.load %src : !tile.queue<f64, lag 0>
      tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,9]xf64>
    }
    ```
    """

    name = "tile.kernel"

    sym_name = prop_def(StringAttr)
    roles = prop_def(ArrayAttr[RoleAttr])
    steps = prop_def(IntAttr)
    stream = opt_prop_def(IntAttr)
    bounds = prop_def(StencilBoundsAttr)
    beyond = opt_prop_def(BoundaryAttr)
    layout = opt_prop_def(LayoutAttr)
    variants = opt_prop_def(ArrayAttr[VariantAttr])
    occupancy = opt_prop_def(IntAttr)
    schedule = opt_prop_def(ScheduleAttr)
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        roles: Sequence[RoleAttr],
        steps: int,
        stream: int | None,
        bounds: StencilBoundsAttr,
        body: Region | Block,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "roles": ArrayAttr(roles),
                "steps": IntAttr(steps),
                "stream": None if stream is None else IntAttr(stream),
                "bounds": bounds,
            },
            regions=[Region(body) if isinstance(body, Block) else body],
        )

    @property
    def rank(self) -> int:
        """The number of axes of the domain."""
        return len(self.bounds.lb)

    @property
    def stream_axis(self) -> int | None:
        """The streaming axis, if any."""
        return None if self.stream is None else self.stream.data

    @property
    def continued_axes(self) -> tuple[int, ...]:
        """The axes along which fields and levels go on outside the bounds."""
        if self.beyond is None:
            return ()
        sides = (self.beyond.of_axis(axis) for axis in range(self.rank))
        return tuple(axis for axis, pair in enumerate(sides) if Kind.KEEP not in pair)

    def sides(self, axis: int) -> tuple[Side, Side]:
        """The kinds of the bounds' sides along an axis."""
        return (Kind.KEEP, Kind.KEEP) if self.beyond is None else self.beyond.of_axis(axis)

    def is_periodic(self, axis: int) -> bool:
        """Whether cells go on at the other end along an axis."""
        return Kind.PERIODIC in self.sides(axis)

    def continued(self, cells: CellBox, bounds: CellBox) -> CellBox:
        """The bounds, as wide as the cells along axes that go on."""
        axes = self.continued_axes
        return CellBox(
            tuple(
                min(a, b) if k in axes else b
                for k, (a, b) in enumerate(zip(cells.lower, bounds.lower))
            ),
            tuple(
                max(a, b) if k in axes else b
                for k, (a, b) in enumerate(zip(cells.upper, bounds.upper))
            ),
        )

    def seen(self, cells: CellBox) -> CellBox:
        """The cells, without cells outside the bounds along axes that go on: those have images."""
        axes, bounds = self.continued_axes, CellBox.of(self.bounds)
        return CellBox(
            tuple(
                max(a, b) if k in axes else a
                for k, (a, b) in enumerate(zip(cells.lower, bounds.lower))
            ),
            tuple(
                min(a, b) if k in axes else a
                for k, (a, b) in enumerate(zip(cells.upper, bounds.upper))
            ),
        )

    @property
    def plane_axes(self) -> tuple[int, ...]:
        """The in-plane axes, slowest first."""
        return tuple(axis for axis in range(self.rank) if axis != self.stream_axis)

    def in_plane(self, offset: Sequence[int]) -> tuple[int, ...]:
        """The in-plane part of an offset."""
        return tuple(offset[axis] for axis in self.plane_axes)

    def along_stream(self, offset: Sequence[int]) -> int:
        """The part of an offset along the stream; 0 without a stream."""
        return 0 if self.stream_axis is None else offset[self.stream_axis]

    @property
    def blocks_per_multiprocessor(self) -> int:
        """Blocks per multiprocessor; 1 before device-tiling."""
        return 1 if self.occupancy is None else self.occupancy.data

    @property
    def decisions(self) -> Schedule:
        """
        The schedule, or the default one, with decisions already taken: the layout, and whether
        tiles are streamed.
        """
        schedule = Schedule() if self.schedule is None else self.schedule.data
        schedule = replace(schedule, resident=self.stream is None)
        return schedule if self.layout is None else schedule.with_layout(self.layout)

    @property
    def stages(self) -> tuple[StageOp, ...]:
        """The operations of a stream step, in order."""
        ops = (op for op in self.body.block.ops if type(op) in STAGES)
        return tuple(cast("Iterator[StageOp]", ops))

    @property
    def reads_memory(self) -> bool:
        """Nothing is kept or exchanged: every tap is read from memory."""
        found = False
        for op in self.body.block.ops:
            if isinstance(op, LoadOp):
                if op.offset is None:
                    return False
                found = True
        return found

    @property
    def is_placed(self) -> bool:
        """Every queue has a home."""
        return all(op.home is not None for op in self.stages if not isinstance(op, StoreOp))

    def needed_cells(self) -> NeededCells:
        """For each queue, a box around the cells on which stored cells depend."""
        needed: NeededCells = {}
        for stage in reversed(self.stages):
            for queue, cells in stage.needs(needed):
                needed[queue] = needed[queue] | cells if queue in needed else cells
        return needed

    def short_fields(self) -> Iterator[tuple[LoadOp, CellBox, CellBox]]:
        """
        Loads from fields without all cells needed by stored cells: the load, the box needed, the
        field's box.
        """
        needed = self.needed_cells()
        for load in [stage for stage in self.stages if isinstance(stage, LoadOp)]:
            field = CellBox.of(field_bounds(load.field))
            if load.result not in needed:
                continue
            read = self.seen(
                needed[load.result]
                if load.offset is None
                else needed[load.result].moved(load.offset)
            )
            if load.axes is not None:
                read = read.along(load.axes)
            if read not in field:
                yield load, read, field

    def argument_role(self, value: SSAValue) -> RoleAttr:
        """The role of an argument of the kernel."""
        assert isinstance(value, BlockArgument) and value.owner is self.body.block
        return self.roles.data[value.index]

    def verify_(self) -> None:
        self.verify_shape()
        self.verify_beyond()
        self.verify_queues()
        self.verify_stores()
        for load, needed, field in self.short_fields():
            raise VerifyException(
                f"stored cells depend on {needed} of a field, and {load.name} reads a field of "
                f"{field}"
            )

    def verify_shape(self) -> None:
        """The arguments, the steps, the stream and the layout go together."""
        args = self.body.block.args
        if len(args) != len(self.roles):
            raise VerifyException(f"{len(args)} arguments and {len(self.roles)} roles")
        if self.steps.data < 1:
            raise VerifyException(f"a kernel advances at least one step, got {self.steps.data}")
        if self.stream is not None and not 0 <= self.stream.data < self.rank:
            raise VerifyException(f"stream axis {self.stream.data} of rank {self.rank}")
        if self.layout is not None and len(self.layout.axes) != len(self.plane_axes):
            raise VerifyException(
                f"layout of {len(self.layout.axes)} axes for a plane of {len(self.plane_axes)}"
            )

    def verify_beyond(self) -> None:
        """Both sides of an axis are kept, or both go on."""
        if self.beyond is None:
            return
        if len(self.beyond.kinds) not in (1, 2 * self.rank):
            raise VerifyException(
                f"a boundary of {len(self.beyond.kinds)} sides for bounds of rank {self.rank}"
            )
        for axis in range(self.rank):
            below, above = self.beyond.of_axis(axis)
            if (below is Kind.KEEP) != (above is Kind.KEEP):
                raise VerifyException(
                    f"an axis goes on at both sides or at none, got {below} and {above}"
                )
            size = tuple(self.bounds.ub)[axis] - tuple(self.bounds.lb)[axis]
            if set(MIRRORS).isdisjoint((below, above)):
                continue
            applies = (stage for stage in self.stages if isinstance(stage, ApplyOp))
            farthest = max((abs(t.offset[axis]) for s in applies for t in s.tap_list), default=0)
            if farthest >= size:
                raise VerifyException(
                    f"a tap {farthest} cells away along axis {axis} of {size} mirrored cells"
                )

    def verify_queues(self) -> None:
        """The body holds stages with read queues, and every queue has a home, or none has."""
        for op in self.body.block.ops:
            if not isinstance(op, StageOp):
                raise VerifyException(f"a kernel holds stages only, got {op.name}")
            if op.results and all(result.first_use is None for result in op.results):
                raise VerifyException(f"a queue of {op.name} has no reader")
        homes = [op.home is not None for op in self.stages if not isinstance(op, StoreOp)]
        if any(homes) and not all(homes):
            raise VerifyException("every queue has a home, or none has")

    def verify_stores(self) -> None:
        """A field is stored once, and not loaded as data; numbers are of steps without points."""
        loaded = {op.data for op in self.stages if isinstance(op, LoadOp)}
        stored: set[SSAValue] = set()
        for op in self.stages:
            if not isinstance(op, StoreOp):
                continue
            if op.field in loaded:
                raise VerifyException("a field is loaded as data and stored in one kernel")
            if op.field in stored:
                raise VerifyException("a field is stored twice in one kernel")
            if op.number is not None and any(
                isinstance(stage, ApplyOp) and stage.points for stage in self.stages
            ):
                raise VerifyException("a kernel with points writes cells, no numbers")
            stored.add(op.field)

    # Written by hand: the region's arguments are named ahead of the region, and a directive of an
    # assembly format sees one place of the text.

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(" roles ")
        printer.print_attribute(self.roles)
        printer.print_string(f" steps {self.steps.data}")
        if self.stream is not None:
            printer.print_string(f" stream {self.stream.data}")
        printer.print_string(" bounds ")
        self.bounds.print_parameters(printer)
        if self.beyond is not None:
            printer.print_string(" beyond ")
            printer.print_attribute(self.beyond)
        if self.layout is not None:
            printer.print_string(" layout ")
            printer.print_attribute(self.layout)
        if self.variants is not None:
            printer.print_string(" variants ")
            printer.print_attribute(self.variants)
        if self.occupancy is not None:
            printer.print_string(f" occupancy {self.occupancy.data}")
        if self.schedule is not None:
            printer.print_string(" schedule ")
            printer.print_attribute(self.schedule)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        args = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=True)
        )
        parser.parse_keyword("roles")
        roles = cast(ArrayAttr[RoleAttr], parser.parse_attribute())
        parser.parse_keyword("steps")
        steps = parser.parse_integer()
        stream = parser.parse_integer() if parser.parse_optional_keyword("stream") else None
        parser.parse_keyword("bounds")
        bounds = parse_bounds(parser)
        optional: dict[str, Attribute] = {}
        for keyword in ("beyond", "layout", "variants"):
            if parser.parse_optional_keyword(keyword):
                optional[keyword] = parser.parse_attribute()
        if parser.parse_optional_keyword("occupancy"):
            optional["occupancy"] = IntAttr(parser.parse_integer())
        schedule = parse_schedule(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region(args)
        kernel = cls(name.data, roles.data, steps, stream, bounds, region)
        kernel.properties.update(optional)
        kernel.schedule = schedule
        if attributes is not None:
            kernel.attributes.update(attributes.data)
        return kernel
