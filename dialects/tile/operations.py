"""The operations of the tile dialect: kernels, and stages in the order of a stream step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FlatSymbolRefAttr,
    FlatSymbolRefAttrConstr,
    IntAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    HasParent,
    IsolatedFromAbove,
    MemoryEffect,
    MemoryEffectKind,
    NoTerminator,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import (
    INTEGERS,
    decode_integers,
    element_type,
    encode_integers,
    field_bounds,
    parse_bounds,
    parse_integers,
    parse_optional_value,
    parse_value,
    parse_values,
)
from timetile.dialects.taps import (
    Tap,
    decode_taps,
    encode_taps,
    parse_taps,
    print_taps,
    verify_taps,
)
from timetile.dialects.temporal import (
    parse_scalars_and_indices,
    print_scalars_and_indices,
)
from timetile.dialects.tile.homes import MailAttr, MemoryAttr, RegistersAttr, SharedAttr
from timetile.dialects.tile.integers import ints
from timetile.dialects.tile.kinds import Published, PublishedAttr, Reader, Sync
from timetile.dialects.tile.layouts import LayoutAttr
from timetile.dialects.tile.queues import QueueType
from timetile.dialects.tile.roles import RoleAttr
from timetile.dialects.tile.variants import VariantAttr

NeededCells: TypeAlias = dict[SSAValue, CellBox]
"""For each queue, a box around the cells needed."""


def queue_type(value: SSAValue) -> QueueType:
    """The type of a queue value."""
    assert isinstance(value.type, QueueType)
    return value.type


def queue_lag(value: SSAValue) -> int:
    """The lag of a queue value, in stream steps."""
    return queue_type(value).lag.data


def verify_rank(kernel: KernelOp, field: SSAValue) -> None:
    """VerifyException for a field with other axes than the kernel's domain."""
    rank = len(field_bounds(field).lb)
    if rank != kernel.rank:
        raise VerifyException(f"field of rank {rank} in a kernel of rank {kernel.rank}")


def parse_home(parser: Parser) -> Attribute | None:
    """Parse an optional ` home #tile...`."""
    return parser.parse_attribute() if parser.parse_optional_keyword("home") else None


def print_home(printer: Printer, home: Attribute | None) -> None:
    """Print ` home #tile...`, nothing where no home was chosen."""
    if home is not None:
        printer.print_string(" home ")
        printer.print_attribute(home)


@irdl_op_definition
class KernelOp(IRDLOperation):
    """
    A kernel: for every tile, every chunk of planes and every stream step, the stages in order.

    `roles`: the role of each argument in the time loop. `steps`: time steps of a launch. `stream`: the streaming axis;
    without a streaming axis the whole tile is a plane. `bounds`: the cells written, in the program's coordinates.
    `layout`: the threads of a tile. `variants`: the lowered copies of the stages. `occupancy`: blocks per
    multiprocessor.

    Example:
    ```
    tile.kernel @heat(%src : !stencil.field<[-1,9]x[-1,9]xf64>, %dst : !stencil.field<[-1,9]x[-1,9]xf64>)
        roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]> {
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
    layout = opt_prop_def(LayoutAttr)
    variants = opt_prop_def(ArrayAttr[VariantAttr])
    occupancy = opt_prop_def(IntAttr)
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
    def plane_axes(self) -> tuple[int, ...]:
        """The in-plane axes, slowest first."""
        return tuple(axis for axis in range(self.rank) if axis != self.stream_axis)

    def in_plane(self, offset: Sequence[int]) -> tuple[int, ...]:
        """The in-plane part of an offset."""
        return tuple(offset[axis] for axis in self.plane_axes)

    @property
    def blocks_per_multiprocessor(self) -> int:
        """Blocks per multiprocessor; 1 before device-tiling."""
        return 1 if self.occupancy is None else self.occupancy.data

    @property
    def stages(self) -> tuple[StageOp, ...]:
        """The operations of a stream step, in order."""
        return tuple(op for op in self.body.block.ops if isinstance(op, StageOp))

    @property
    def reads_memory(self) -> bool:
        """Nothing is kept or exchanged: every tap is read from memory."""
        loads = [op for op in self.stages if isinstance(op, LoadOp)]
        return bool(loads) and all(load.offset is not None for load in loads)

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
        """Loads from fields without all cells needed by stored cells: the load, the box needed, the field's box."""
        needed = self.needed_cells()
        for load in [stage for stage in self.stages if isinstance(stage, LoadOp)]:
            field = CellBox.of(field_bounds(load.operands[0]))
            if load.result not in needed:
                continue
            read = needed[load.result]
            if load.offset is not None:
                read = read.moved(load.offset)
            if read not in field:
                yield load, read, field

    def argument_role(self, value: SSAValue) -> RoleAttr:
        """The role of an argument of the kernel."""
        assert isinstance(value, BlockArgument) and value.owner is self.body.block
        return self.roles.data[value.index]

    def verify_(self) -> None:
        args = self.body.block.args
        if len(args) != len(self.roles):
            raise VerifyException(f"{len(args)} arguments and {len(self.roles)} roles")
        if self.steps.data < 1:
            raise VerifyException(f"a kernel advances at least one step, got {self.steps.data}")
        if self.stream is not None and not 0 <= self.stream.data < self.rank:
            raise VerifyException(f"stream axis {self.stream.data} of rank {self.rank}")
        for op in self.body.block.ops:
            if not isinstance(op, StageOp):
                raise VerifyException(f"a kernel holds stages only, got {op.name}")
            if op.results and all(result.first_use is None for result in op.results):
                raise VerifyException(f"a queue of {op.name} has no reader")
        homes = [op.home is not None for op in self.stages if not isinstance(op, StoreOp)]
        if any(homes) and not all(homes):
            raise VerifyException("every queue has a home, or none has")
        if self.layout is not None and len(self.layout.axes) != len(self.plane_axes):
            raise VerifyException(
                f"layout of {len(self.layout.axes)} axes for a plane of {len(self.plane_axes)}"
            )
        loaded = {op.data for op in self.stages if isinstance(op, LoadOp)}
        stored: set[SSAValue] = set()
        for op in self.stages:
            if isinstance(op, StoreOp):
                if op.field in loaded:
                    raise VerifyException("a field is loaded as data and stored in one kernel")
                if op.field in stored:
                    raise VerifyException("a field is stored twice in one kernel")
                stored.add(op.field)
        for load, needed, field in self.short_fields():
            raise VerifyException(
                f"stored cells depend on {needed} of a field, and {load.name} reads one that has {field}"
            )

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
        if self.layout is not None:
            printer.print_string(" layout ")
            printer.print_attribute(self.layout)
        if self.variants is not None:
            printer.print_string(" variants ")
            printer.print_attribute(self.variants)
        if self.occupancy is not None:
            printer.print_string(f" occupancy {self.occupancy.data}")
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
        for keyword in ("layout", "variants"):
            if parser.parse_optional_keyword(keyword):
                optional[keyword] = parser.parse_attribute()
        if parser.parse_optional_keyword("occupancy"):
            optional["occupancy"] = IntAttr(parser.parse_integer())
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region(args)
        kernel = cls(name.data, roles.data, steps, stream, bounds, region)
        kernel.properties.update(optional)
        if attributes is not None:
            kernel.attributes.update(attributes.data)
        return kernel


class LoadEffects(MemoryEffect):
    """A load reads the operands."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.READ, f) for f in op.operands}


@irdl_op_definition
class LoadOp(IRDLOperation):
    """
    The plane of a field at the result's lag: inside the kernel's bounds from `data`, outside from `halo`,
    fetched `ahead` steps early. With `at`, each cell of the plane is the field's cell at an offset (cells, per axis):
    readers tap offset 0 and read memory, as in `tile.load %src at [0, -8] home #tile.memory`.

    Example: `%u = tile.load %src halo %A ahead 3 : !tile.queue<f64, lag 0>`
    """

    name = "tile.load"

    data = opt_operand_def(FieldType)
    halo = opt_operand_def(FieldType)
    at = opt_prop_def(INTEGERS)
    ahead = opt_prop_def(IntAttr)
    home = opt_prop_def(RegistersAttr | SharedAttr | MemoryAttr)
    result = result_def(QueueType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(HasParent(KernelOp), LoadEffects())

    def __init__(
        self,
        data: SSAValue | None,
        halo: SSAValue | None,
        lag: int,
        at: Sequence[int] | None = None,
    ):
        field = data if data is not None else halo
        assert field is not None
        super().__init__(
            operands=[data, halo],
            properties={"at": None if at is None else encode_integers(at)},
            result_types=[QueueType(element_type(field), lag)],
        )

    @property
    def offset(self) -> tuple[int, ...] | None:
        """The offset of the field's cells (cells, per axis); None for a load of the plane at offset 0."""
        return None if self.at is None else decode_integers(self.at)

    @property
    def keeps_no_plane(self) -> bool:
        """Readers read memory: the load is of a halo, or has an offset."""
        return self.data is None or self.at is not None

    @property
    def lag(self) -> int:
        """The lag of the result, in stream steps."""
        return queue_lag(self.result)

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
        for field in self.operands:
            verify_rank(cast(KernelOp, self.parent_op()), field)
            if element_type(field) != queue_type(self.result).element:
                raise VerifyException(
                    f"field of {element_type(field)} loaded as {queue_type(self.result).element}"
                )
        if self.planes_ahead < 0:
            raise VerifyException(
                f"a plane is fetched 0 or more steps early, got {self.planes_ahead}"
            )
        if self.offset is not None:
            self.verify_offset(self.offset)

    def verify_offset(self, offset: tuple[int, ...]) -> None:
        """VerifyException unless a load with an offset is of data, lives in memory, and is tapped at offset 0."""
        kernel = self.parent_op()
        if isinstance(kernel, KernelOp) and len(offset) != kernel.rank:
            raise VerifyException(f"at has {len(offset)} axes and the domain {kernel.rank}")
        if self.data is None or self.halo is not None or self.planes_ahead:
            raise VerifyException("a load with at has a data field, no halo, and none ahead")
        if not isinstance(self.home, MemoryAttr | None):
            raise VerifyException(f"a load with at lives in memory, got {self.home}")
        for use in self.result.uses:
            if not isinstance(use.operation, ApplyOp):
                raise VerifyException(
                    f"a load with at is read by tile.apply, got {use.operation.name}"
                )
        if any(any(tap.offset) for _, tap in taps_of(self.result)):
            raise VerifyException("a load with at is tapped at the own cell")

    def print(self, printer: Printer) -> None:
        if self.data is not None:
            printer.print_string(" ")
            printer.print_operand(self.data)
        if self.halo is not None:
            printer.print_string(" halo ")
            printer.print_operand(self.halo)
        if self.offset is not None:
            printer.print_string(f" at {list(self.offset)}")
        if self.ahead is not None:
            printer.print_string(f" ahead {self.ahead.data}")
        print_home(printer, self.home)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        data = parse_optional_value(parser)
        halo = parse_value(parser) if parser.parse_optional_keyword("halo") else None
        at = parse_integers(parser) if parser.parse_optional_keyword("at") else None
        ahead = IntAttr(parser.parse_integer()) if parser.parse_optional_keyword("ahead") else None
        home = parse_home(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_punctuation(":")
        return cls.build(
            operands=[data, halo],
            properties={
                "at": None if at is None else encode_integers(at),
                "ahead": ahead,
                "home": home,
            },
            attributes=attributes.data if attributes else {},
            result_types=[parser.parse_type()],
        )


@irdl_op_definition
class ApplyOp(IRDLOperation):
    """
    The next plane of each result: the cell function on the taps. The box is the kernel's bounds, or the box
    after `in`. Outside the box result k takes the plane of `else` operand k; without `else` cells outside are computed
    like cells inside, as far as needed by readers.

    Example:
    `%v = tile.apply @cell(%u[-1, 0], %u[0, 0]) else %h : !tile.queue<f64, lag 1>`
    """

    name = "tile.apply"

    queues = var_operand_def(QueueType)
    scalars = var_operand_def()
    outside = var_operand_def(QueueType)
    cell = prop_def(FlatSymbolRefAttrConstr)
    taps = prop_def(INTEGERS)
    indices = opt_prop_def(INTEGERS)
    box = opt_prop_def(StencilBoundsAttr)
    home = opt_prop_def(RegistersAttr | SharedAttr)
    res = var_result_def(QueueType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(HasParent(KernelOp), Pure())

    def __init__(
        self,
        cell: str | FlatSymbolRefAttr,
        queues: Sequence[SSAValue],
        taps: Sequence[Tap],
        rank: int,
        result_types: Sequence[QueueType],
        outside: Sequence[SSAValue] = (),
        scalars: Sequence[SSAValue] = (),
        indices: Sequence[int] = (),
        box: StencilBoundsAttr | None = None,
    ):
        assert all(len(tap.offset) == rank for tap in taps)
        super().__init__(
            operands=[queues, scalars, outside],
            properties={
                "cell": SymbolRefAttr(cell) if isinstance(cell, str) else cell,
                "taps": encode_taps(taps),
                "indices": encode_integers(indices) if indices else None,
                "box": box,
            },
            result_types=[list(result_types)],
        )

    @property
    def kernel(self) -> KernelOp:
        """The enclosing kernel."""
        return cast(KernelOp, self.parent_op())

    @property
    def replaces_cells(self) -> bool:
        """Cells outside the kernel's bounds are not computed by the cell function."""
        return self.box is None and bool(self.outside)

    @property
    def tap_list(self) -> tuple[Tap, ...]:
        """The taps, in the order of the cell function's arguments."""
        return decode_taps(self.taps, self.kernel.rank)

    @property
    def index_axes(self) -> tuple[int, ...]:
        """The axes of the coordinates among the cell function's arguments."""
        return decode_integers(self.indices)

    @property
    def lag(self) -> int:
        """The lag of the results, in stream steps."""
        return queue_lag(self.res[0])

    def age(self, tap: Tap) -> int:
        """The age of the tapped plane, in stream steps; 0 is the plane of the present step."""
        stream = self.kernel.stream_axis
        offset = 0 if stream is None else tap.offset[stream]
        return self.lag - queue_lag(self.queues[tap.operand]) - offset

    def needs(self, made: NeededCells) -> Iterator[tuple[SSAValue, CellBox]]:
        """The queues read, with the cells needed for the cells `made` of the results."""
        parts = [made[result] for result in self.res if result in made]
        if not parts:
            return
        computed = reduce(CellBox.__or__, parts)
        if self.outside:
            computed &= CellBox.of(self.kernel.bounds if self.box is None else self.box)
        for tap in () if computed.is_empty else self.tap_list:
            yield self.queues[tap.operand], computed.moved(tap.offset)
        for queue, result in zip(self.outside, self.res):
            if result in made and made[result] not in computed:
                yield queue, made[result]

    def verify_(self) -> None:
        kernel = self.kernel
        verify_taps(self.taps, kernel.rank, len(self.queues))
        if not self.res:
            raise VerifyException("an apply has at least one result")
        if len({queue_lag(r) for r in self.res}) != 1:
            raise VerifyException("the results of an apply have one lag")
        if self.outside and len(self.outside) != len(self.res):
            raise VerifyException(f"{len(self.outside)} else operands for {len(self.res)} results")
        for queue, result in zip(self.outside, self.res):
            if queue_type(queue).element != queue_type(result).element:
                raise VerifyException("an else operand has the element type of its result")
        for queue in self.outside:
            load = queue.owner
            if self.box is not None and isinstance(load, LoadOp) and load.data is None:
                raise VerifyException(
                    "a stage with a box of its own takes cells inside the bounds from else, and a load of a halo has none"
                )
            if self.lag < queue_lag(queue):
                raise VerifyException(
                    f"else reads a plane that has not arrived: lag {self.lag} must be at least "
                    f"{queue_lag(queue)}"
                )
        for tap in self.tap_list:
            if self.age(tap) < 0:
                raise VerifyException(
                    f"tap {list(tap.offset)} reads a plane that has not arrived: lag {self.lag} "
                    f"must be at least {self.lag - self.age(tap)}"
                )
            self.verify_tap_distance(tap)

    def verify_tap_distance(self, tap: Tap) -> None:
        """VerifyException for a tap across warps, unless within the edges of an exchange."""
        kernel = self.kernel
        if kernel.layout is None:
            return
        queue = self.queues[tap.operand]
        home = getattr(queue.owner, "home", None)
        if isinstance(home, SharedAttr) and home.reader.data is Reader.TILE:
            return
        edges = ints(queue_type(queue).edges) or (0,) * len(kernel.plane_axes)
        for axis, layout, edge in zip(kernel.plane_axes, kernel.layout.axis_layouts, edges):
            if layout.warps * layout.blocks > 1 and abs(tap.offset[axis]) > edge:
                raise VerifyException(
                    f"tap {list(tap.offset)} crosses warps along axis {axis}; tap an exchange of "
                    f"the queue with edges of at least {abs(tap.offset[axis])}, not of {edge}"
                )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.cell.string_value())
        print_taps(printer, self.tap_list, self.queues)
        print_scalars_and_indices(printer, self.scalars, self.index_axes)
        if self.outside:
            printer.print_string(" else ")
            printer.print_list(self.outside, printer.print_operand)
        if self.box is not None:
            printer.print_string(" in ")
            self.box.print_parameters(printer)
        print_home(printer, self.home)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" : ")
        printer.print_list(self.res.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> ApplyOp:
        cell = parser.parse_symbol_name()
        queues, taps = parse_taps(parser)
        scalars, indices = parse_scalars_and_indices(parser)
        outside: list[SSAValue] = []
        if parser.parse_optional_keyword("else"):
            outside = parse_values(parser, parser.Delimiter.NONE)
        box = None
        if parser.parse_optional_keyword("in"):
            box = parse_bounds(parser)
        home = parse_home(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.build(
            operands=[queues, scalars, outside],
            properties={
                "cell": SymbolRefAttr(cell),
                "taps": encode_taps(taps),
                "indices": encode_integers(indices) if indices else None,
                "box": box,
                "home": home,
            },
            attributes=attributes.data if attributes else {},
            result_types=[types],
        )


def taps_of(queue: SSAValue) -> Iterator[tuple[ApplyOp, Tap]]:
    """The taps of a queue, with the applies."""
    for reader in dict.fromkeys(use.operation for use in queue.uses):
        if isinstance(reader, ApplyOp):
            named = {k for k, operand in enumerate(reader.queues) if operand is queue}
            for tap in reader.tap_list:
                if tap.operand in named:
                    yield reader, tap


@irdl_op_definition
class ExchangeOp(IRDLOperation):
    """
    The planes of a queue, with neighbours' cells readable across warps up to the edges of the result's type.
    `what` is published: the `edges` read by neighbours, the whole `plane`, or the asynchronous `copies` of a field
    loaded ahead. Copies land in memory shared by all threads of the tile, with a rim of the edges' width around the
    tile, so that no cell is written twice. Readers read planes `delay` steps after publishing; a greater lag of the
    result means planes published at an age above 0.

    Example:
    `%e = tile.exchange %u what edges delay 1 : !tile.queue<f64, lag 2, edges [1, 0]>`
    """

    name = "tile.exchange"

    queue = operand_def(QueueType)
    what = prop_def(PublishedAttr)
    delay = prop_def(IntAttr)
    home = opt_prop_def(MailAttr)
    result = result_def(QueueType)

    traits = traits_def(HasParent(KernelOp))

    def __init__(
        self,
        queue: SSAValue,
        edges: Sequence[int],
        what: Published = Published.PLANE,
        delay: int = 0,
    ):
        source = queue_type(queue)
        super().__init__(
            operands=[queue],
            properties={"what": PublishedAttr(what), "delay": IntAttr(delay)},
            result_types=[QueueType(source.element, source.lag.data + delay, edges)],
        )

    @property
    def lag(self) -> int:
        """The lag of the result, in stream steps."""
        return queue_lag(self.result)

    @property
    def publishes_copies(self) -> bool:
        """The asynchronous copies of a load serve the readers."""
        return self.what.data is Published.COPIES

    @property
    def hold(self) -> int:
        """The age of published planes, in stream steps."""
        return self.lag - queue_lag(self.queue) - self.delay.data

    @property
    def edges(self) -> tuple[int, ...]:
        """Readable neighbour cells per in-plane axis."""
        return ints(queue_type(self.result).edges)

    def needs(self, made: NeededCells) -> Iterator[tuple[SSAValue, CellBox]]:
        """The queue, with the cells needed for the cells `made` of the result."""
        if self.result in made:
            yield self.queue, made[self.result]

    def verify_(self) -> None:
        if self.publishes_copies and not (
            isinstance(load := self.queue.owner, LoadOp) and load.data is not None
        ):
            raise VerifyException("only a load's asynchronous copies can be published")
        delay = self.delay.data
        if self.hold < 0:
            raise VerifyException(
                f"lag {self.lag} is below the source's {queue_lag(self.queue)} plus delay {delay}"
            )
        if not self.edges:
            raise VerifyException("an exchange without edges serves nobody")
        if self.home is None:
            return
        every, slots = self.home.every.data, self.home.slots.data
        if not (delay == 0 and every == 1) and delay < every:
            raise VerifyException(
                f"delay {delay} is shorter than the {every} steps between synchronisations"
            )
        if slots < delay + every:
            raise VerifyException(
                f"{slots} slots are overwritten before they are read: delay {delay} and one "
                f"synchronisation every {every} steps need {delay + every}"
            )
        if self.home.sync.data is Sync.FLAGS and slots < 2 * delay:
            raise VerifyException(
                f"{slots} slots are overwritten before their sender hears that they were read: "
                f"messages that are read {delay} steps later need {2 * delay}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.queue)
        printer.print_string(f" what {self.what.data} delay {self.delay.data}")
        print_home(printer, self.home)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ExchangeOp:
        queue = parse_value(parser)
        parser.parse_keyword("what")
        what = PublishedAttr(parser.parse_str_enum(Published))
        parser.parse_keyword("delay")
        delay = IntAttr(parser.parse_integer())
        home = parse_home(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_punctuation(":")
        return cls.build(
            operands=[queue],
            properties={"what": what, "delay": delay, "home": home},
            attributes=attributes.data if attributes else {},
            result_types=[parser.parse_type()],
        )


class StoreEffects(MemoryEffect):
    """A store writes the field."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.WRITE, cast(StoreOp, op).field)}


@irdl_op_definition
class StoreOp(IRDLOperation):
    """
    Write the tile's own cells of the newest plane inside the kernel's bounds and the field.

    Example: `tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,9]xf64>`
    """

    name = "tile.store"

    queue = operand_def(QueueType)
    field = operand_def(FieldType)

    assembly_format = "$queue `to` $field attr-dict `:` type($queue) `,` type($field)"
    traits = traits_def(HasParent(KernelOp), StoreEffects())

    def __init__(self, queue: SSAValue, field: SSAValue):
        super().__init__(operands=[queue, field])

    @property
    def home(self) -> None:
        """A store keeps nothing."""
        return None

    @property
    def lag(self) -> int:
        """The lag of the stored queue, in stream steps."""
        return queue_lag(self.queue)

    @property
    def box(self) -> CellBox:
        """The cells written, in the program's coordinates."""
        kernel = cast(KernelOp, self.parent_op())
        return CellBox.of(kernel.bounds) & CellBox.of(field_bounds(self.field))

    def needs(self, made: NeededCells) -> Iterator[tuple[SSAValue, CellBox]]:
        """The queue, with the cells needed."""
        yield self.queue, self.box

    def verify_(self) -> None:
        kernel = cast(KernelOp, self.parent_op())
        verify_rank(kernel, self.field)
        bounds, field = CellBox.of(kernel.bounds), CellBox.of(field_bounds(self.field))
        if (bounds & field).is_empty:
            raise VerifyException(
                f"it stores nothing: bounds {bounds} and the field's {field} have no cell in common"
            )
        if element_type(self.field) != queue_type(self.queue).element:
            raise VerifyException(
                f"queue of {queue_type(self.queue).element} stored to a field of "
                f"{element_type(self.field)}"
            )


StageOp = LoadOp | ApplyOp | ExchangeOp | StoreOp
