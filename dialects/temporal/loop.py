"""Time loops over rotating buffers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    FlatSymbolRefAttr,
    IndexType,
    UnitAttr,
)
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    HasCanonicalizationPatternsTrait,
    MemoryEffect,
    MemoryEffectKind,
    NoTerminator,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.syntax import (
    INTEGERS,
    decode_integers,
    encode_integers,
    parse_integers,
    parse_value,
)
from timetile.dialects.temporal.part import PartAttr
from timetile.dialects.temporal.points import PointKind
from timetile.dialects.temporal.update import UpdateOp
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr, parse_schedule

MOST_DEPTH = 256
"""
Most steps of a kernel. Deeper kernels would compute more cells around tiles than inside, and take
minutes to plan.
"""


class LoopEffects(MemoryEffect):
    """A time loop reads and writes the buffers, so that no cleanup erases the loop."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, LoopOp)
        return {
            EffectInstance(kind, buffer)
            for buffer in (*op.buffers, *op.sampled)
            for kind in (MemoryEffectKind.READ, MemoryEffectKind.WRITE)
        }


class LoopCanonicalization(HasCanonicalizationPatternsTrait):
    """Loops and buffers without an update."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from timetile.dialects.temporal.canonicalize import DropIdleBuffers, RemoveIdleLoop

        return RemoveIdleLoop(), DropIdleBuffers()


@irdl_op_definition
class LoopOp(IRDLOperation):
    """
    Run the region `steps` times. After each step argument k names the former buffer of argument
    `rotate[k]`. Result k is the buffer of argument k after the last step.

    A `sweep` is a loop of a single step outside the program's time loops: a number of steps given
    by a caller does not apply to a sweep.

    `common_halos` is a promise: the buffers of a cycle of the rotation have equal cells outside the
    cells written by updates. Passes use the promise where the buffers of a cycle hold a single live
    version by turns.

    `part` says that the fields hold a part of a domain, for one of several ranks.

    `depths` lists the temporal depths of the kernels, `schedule` holds the decisions of
    `choose-schedule`, `kernels` names the kernels. The last kernel advances a single step and
    stores all cells written by the step; the others store the cells read by later steps. A step in
    parts has a kernel for each part, in the order of launches, and no others. `inside` holds the
    decisions for the first of these kernels, if it keeps planes.

    Example:
    ```
    temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [4, 2, 1] {
      temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [64]>
    } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
    ```
    """

    name = "temporal.loop"

    steps = operand_def(IndexType)
    buffers = var_operand_def(FieldType)
    res = var_result_def(FieldType)
    rotate = prop_def(INTEGERS)
    sweep = opt_prop_def(UnitAttr)
    common_halos = opt_prop_def(UnitAttr)
    part = opt_prop_def(PartAttr)
    depths = opt_prop_def(INTEGERS)
    schedule = opt_prop_def(ScheduleAttr)
    inside = opt_prop_def(ScheduleAttr)
    kernels = opt_prop_def(ArrayAttr[FlatSymbolRefAttr])
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), LoopEffects(), LoopCanonicalization())

    def __init__(
        self,
        steps: SSAValue,
        buffers: Sequence[SSAValue],
        rotate: Sequence[int],
        body: Region | None = None,
        depths: Sequence[int] | None = None,
        *,
        sweep: bool = False,
    ):
        types = [b.type for b in buffers]
        super().__init__(
            operands=[steps, buffers],
            result_types=[types],
            properties={
                "rotate": encode_integers(rotate),
                "depths": None if depths is None else encode_integers(depths),
                "sweep": UnitAttr() if sweep else None,
            },
            regions=[body or Region(Block(arg_types=types))],
        )

    @property
    def rotation(self) -> tuple[int, ...]:
        """`rotation[k]`: the argument from which argument k takes the buffer after a step."""
        return decode_integers(self.rotate)

    @property
    def depth_list(self) -> tuple[int, ...]:
        """The temporal depths to make kernels for, deepest first; (1,) if none was asked for."""
        return decode_integers(self.depths) or (1,)

    @property
    def decisions(self) -> Schedule:
        """The schedule; the default one if the loop has none."""
        return Schedule() if self.schedule is None else self.schedule.data

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """The symbols of the loop's kernels; empty before device-tiling."""
        return () if self.kernels is None else tuple(k.string_value() for k in self.kernels)

    @property
    def captures(self) -> tuple[SSAValue, ...]:
        """The fields of the enclosing function read by a step, in the order of first use."""
        own = self.body.block.args
        sources = (s for update in self.updates for s in (*update.sources, *update.points[1:]))
        return tuple(dict.fromkeys(s for s in sources if s not in own))

    @property
    def scalars(self) -> tuple[SSAValue, ...]:
        """The scalars of the enclosing function used by a step, in the order of first use."""
        scalars = (s for update in self.updates for s in (*update.scalars, *update.points[:1]))
        return tuple(dict.fromkeys(scalars))

    @property
    def has_points(self) -> bool:
        """Some update takes values at points, or notes cells."""
        return any(update.points for update in self.updates)

    @property
    def sampled(self) -> tuple[SSAValue, ...]:
        """The tables written by samples of the updates."""
        sets = (made for update in self.updates for made in update.point_sets)
        return tuple(dict.fromkeys(m.table for m in sets if m.kind is PointKind.SAMPLE))

    @property
    def point_fields(self) -> tuple[SSAValue, ...]:
        """The lists, weights and tables of points, in the order of first use."""
        return tuple(dict.fromkeys(f for update in self.updates for f in update.points[1:]))

    @property
    def updates(self) -> tuple[UpdateOp, ...]:
        """The updates of a step, in program order."""
        return tuple(op for op in self.body.block.ops if isinstance(op, UpdateOp))

    def verify_(self) -> None:
        count = len(self.buffers)
        if sorted(self.rotation) != list(range(count)):
            raise VerifyException(
                f"rotate must be a permutation of 0 to {count - 1}, got {list(self.rotation)}"
            )
        if len(set(self.buffers)) != count:
            raise VerifyException("every buffer of the loop must be a different value")
        types = tuple(b.type for b in self.buffers)
        if self.body.block.arg_types != types or tuple(r.type for r in self.res) != types:
            raise VerifyException("arguments and results must have the types of the buffers")
        for k, source in enumerate(self.rotation):
            if types[source] != types[k]:
                raise VerifyException(
                    f"rotation gives argument {k} of type {types[k]} a buffer of type "
                    f"{types[source]}"
                )
        if not all(1 <= depth <= MOST_DEPTH for depth in self.depth_list):
            raise VerifyException(
                f"depths must be from 1 to {MOST_DEPTH}, got {list(self.depth_list)}"
            )
        for op in self.body.block.ops:
            if not isinstance(op, UpdateOp):
                raise VerifyException(f"a time loop holds temporal.update only, got {op.name}")

    # Written by hand: the region's arguments are named ahead of the region, and a directive of an
    # assembly format sees one place of the text.

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.steps)
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(
                zip(self.body.block.args, self.buffers),
                lambda pair: (
                    printer.print_ssa_value(pair[0]),
                    printer.print_string(" = "),
                    printer.print_operand(pair[1]),
                ),
            )
        printer.print_string(f" rotate {list(self.rotation)}")
        if self.sweep is not None:
            printer.print_string(" sweep")
        if self.common_halos is not None:
            printer.print_string(" common_halos")
        if self.part is not None:
            printer.print_string(" part ")
            printer.print_attribute(self.part)
        if self.depths is not None:
            printer.print_string(f" depths {list(self.depth_list)}")
        if self.schedule is not None:
            printer.print_string(" schedule ")
            printer.print_attribute(self.schedule)
        if self.inside is not None:
            printer.print_string(" inside ")
            printer.print_attribute(self.inside)
        if self.kernels is not None:
            printer.print_string(" kernels ")
            printer.print_attribute(self.kernels)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        if self.buffers:
            printer.print_string(" : ")
            printer.print_list((b.type for b in self.buffers), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        steps = parse_value(parser)
        names: list[Parser.UnresolvedArgument] = []
        buffers: list[SSAValue] = []

        def parse_buffer() -> None:
            names.append(parser.parse_argument(expect_type=False))
            parser.parse_punctuation("=")
            buffers.append(parse_value(parser))

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_buffer)
        parser.parse_keyword("rotate")
        rotate = parse_integers(parser)
        sweep = parser.parse_optional_keyword("sweep")
        common_halos = parser.parse_optional_keyword("common_halos")
        part = parser.parse_attribute() if parser.parse_optional_keyword("part") else None
        depths = parse_integers(parser) if parser.parse_optional_keyword("depths") else None
        schedule = parse_schedule(parser)
        inside = parse_schedule(parser, "inside")
        kernels = parser.parse_attribute() if parser.parse_optional_keyword("kernels") else None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region([n.resolve(b.type) for n, b in zip(names, buffers)])
        if buffers:
            parser.parse_punctuation(":")
            parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        loop = cls(steps, buffers, rotate, region, depths, sweep=sweep is not None)
        if common_halos:
            loop.common_halos = UnitAttr()
        loop.schedule, loop.inside = schedule, inside
        if part is not None:
            loop.properties["part"] = part
        if kernels is not None:
            loop.properties["kernels"] = kernels
        if attributes is not None:
            loop.attributes.update(attributes.data)
        return loop
