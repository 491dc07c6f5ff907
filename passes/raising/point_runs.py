"""
Raises work of the host at points in a time loop: functions that run the loop as kernels of several
steps, beside the loop.

Before:
```
scf.for %t = %zero to %n step %one iter_args(...) -> (...) {
  stencil.store %v to %b(<[0], [8]>)
  scf.for %k = %zero to %four step %one {
    %i = memref.load %places[%k]
    %old = memref.load %cells[%i]     // cells of %b
    %a = memref.load %wave[%t]
    %new = arith.addf %old, %a
    memref.store %new, %cells[%i]
  }
  scf.yield ...
}
```
After, in front of the loop:
```
temporal.point_run [@heat_lists, @heat_places, @heat_values, @heat_steps, @heat_after]
  [#temporal.point_list<inject 1 later 0 in <[0], [8]> of <[-1], [9]>>]
  rotate [1, 0] (%places, %wave) : memref<4xindex>, memref<9xf64>
```
1. A unit of the host that adds known values to cells is a list: `places` has the unit's arithmetic
   of places, `values` that of the values, for some steps. Each entry of the list has a column, with
   weight 1: the additions are those of the unit, in the unit's order.
2. Each read of cells by another unit is a list, too. `after` holds all such units of some steps, in
   order, with noted cells in place of the reads: any arithmetic, and any memory but fields.
3. A field read before the step writes the field is noted at the end of an earlier step: `later`
   steps pass in between.
4. `steps` is the loop without units, raised to a `temporal.loop` whose updates take the lists.

The loop itself stays: the host runs the loop a step at a time where a run does not fit the lists
(`runtime/host/point_loops.py`). All conditions that depend on the IR are checked here, those that
depend on places by the runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    ModuleOp,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import (
    InjectOp,
    PointKind,
    PointListAttr,
    PointOp,
    PointRunOp,
    SampleOp,
    ScratchOp,
)
from timetile.dialects.temporal.point_run import FUNCTIONS
from timetile.dialects.verified import terminator_of
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.loops import carried_rotation, raise_loop
from timetile.passes.raising.memory import may_be_one, memory_of
from timetile.passes.raising.point_accesses import (
    is_of_field,
    is_unit,
    shape_of_access,
)
from timetile.passes.raising.point_functions import (
    PointFunction,
    StepsOfHost,
    check_known_reads,
    copied_into,
    drop_unused,
    drop_writes,
    give_outside_values,
    index_constant,
    note_place,
    note_value,
    use_note,
)
from timetile.passes.raising.point_work import PointLoop, RaisedList
from timetile.passes.raising.sweeps import top_level
from timetile.passes.rewriting import unique_symbol


def raise_points(loop: scf.ForOp, module: ModuleOp, prefix: str) -> None:
    """
    Make the functions of a time loop with points, and name the functions in front of the loop. The
    loop is unchanged. Raises CannotRaiseError for work at points without lists.
    """
    Companion(PointLoop(loop), module, prefix).make()


def drop_point_runs(module: ModuleOp) -> None:
    """Leave out the functions of time loops with points: the host runs all steps."""
    for run in [op for op in module.walk() if isinstance(op, PointRunOp)]:
        names = {name.string_value() for name in run.functions.data}
        for function in [op for op in module.ops if isinstance(op, FuncOp)]:
            if function.sym_name.data in names:
                Rewriter.erase_op(function)
        Rewriter.erase_op(run)


class Companion:
    """The functions of a time loop with points."""

    def __init__(self, points: PointLoop, module: ModuleOp, prefix: str):
        self.points, self.loop, self.module = points, points.loop, module
        self.block, self.lists = points.block, points.lists
        self.prefix = prefix
        taken: list[FuncOp] = []
        self.begun: list[PointFunction] = []
        self.names: dict[str, str] = {}
        for part in FUNCTIONS:
            self.names[part] = unique_symbol(module, f"{prefix}_{part}", taken)
        self.injects = [made for made in self.lists if made.access.kind is PointKind.INJECT]
        self.samples = [made for made in self.lists if made.access.kind is PointKind.SAMPLE]

    def make(self) -> None:
        """Make the functions, raise the steps, and name the functions in front of the loop."""
        try:
            given = self.make_functions()
        except CannotRaiseError as error:
            for made in self.begun:
                made.forget()
            inside = self.loop.is_ancestor(error.op)
            raise CannotRaiseError(error.op if inside else self.loop, error.reason) from error
        run = PointRunOp(
            [self.names[part] for part in FUNCTIONS],
            [self.use_of(each, given) for each in self.lists],
            carried_rotation(self.loop),
            given,
        )
        Rewriter.insert_op(run, InsertPoint.before(self.loop))

    def use_of(self, each: RaisedList, given: Sequence[SSAValue]) -> PointListAttr:
        """What a list is for, with the values from outside."""
        known = [*self.block.args[1:], *given]
        field = each.field
        while field not in known:
            owner = field.owner
            assert isinstance(owner, Operation)
            field = owner.operands[0]
        return PointListAttr(
            each.access.kind, known.index(field), each.later, each.box, field_bounds(each.field)
        )

    def make_functions(self) -> list[SSAValue]:
        """Make the functions, and raise the steps. Returns the values from outside."""
        functions = [self.list_fields(), self.places(), self.values(), self.steps(), self.after()]
        given = give_outside_values(functions, self.loop)
        top = top_level(self.block, self.module)
        for function in functions:
            self.module.body.block.insert_op_before(function, top)
        self.raise_steps(functions[FUNCTIONS.index("steps")])
        return given

    def begin(self, part: str, kinds: Sequence[Attribute]) -> PointFunction:
        """A new function, forgotten if another cannot be made."""
        self.begun.append(PointFunction(self.names[part], kinds))
        return self.begun[-1]

    def list_fields(self) -> FuncOp:
        """The function that makes the fields of all lists."""
        made = self.begin("lists", [])
        ops = [ScratchOp(kind) for each in self.lists for kind in each.parts]
        made.block.add_ops(ops)
        made.returns([op.field for op in ops])
        return made.op()

    def step_numbers(self) -> list[Attribute]:
        """The types for first step, stride and step count."""
        kind = self.block.args[0].type
        return [kind, kind, IndexType()]

    def operations_of(self, units: Sequence[Operation]) -> list[Operation]:
        """The operations of a step with some units, without updates and names of fields."""
        return [
            op
            for op in self.block.ops
            if op is not self.block.last_op
            and not op.name.startswith("stencil.")
            and not isinstance(op, PointOp)
            and not is_of_field(op, self.points.fields)
            and (op in units or not is_unit(op) or self.is_known_read(op))
        ]

    def is_known_read(self, op: Operation) -> bool:
        """Whether an operation reads memory that no step writes."""
        if not isinstance(op, memref.LoadOp):
            return False
        return not any(may_be_one(memory_of(op.memref), other) for other in self.points.written)

    def places(self) -> FuncOp:
        """The function that notes the cell of each entry."""
        memory: list[Attribute] = [MemRefType(i64, [made.entries]) for made in self.lists]
        made = self.begin("places", memory)
        units = [each.access.unit for each in self.lists]
        copies = copied_into(self.operations_of(units), {}, made.block)
        for each, cells in zip(self.lists, made.block.args):
            note_place(each.access, copies, cells, shape_of_access(each.access))
        return self.ended(made, copies)

    def values(self) -> FuncOp:
        """The function that computes the values of some steps."""
        tables = [MemRefType(each.kind, [each.rows * each.entries]) for each in self.injects]
        made = self.begin("values", [*self.step_numbers(), *tables])
        units = [each.access.unit for each in self.injects]

        def body(block: Block, number: SSAValue, now: SSAValue) -> None:
            copies = copied_into(self.operations_of(units), {self.block.args[0]: now}, block)
            for each, table in zip(self.injects, made.block.args[3:]):
                note_value(each.access, copies, number, table)
            drop_writes(copies)

        StepsOfHost(self.loop, made).make(body)
        return self.ended(made, {})

    def after(self) -> FuncOp:
        """The function with the work of some steps on noted cells."""
        notes = [
            MemRefType(each.kind, [(each.rows + each.later) * each.entries])
            for each in self.samples
        ]
        made = self.begin("after", [*self.step_numbers(), *notes])
        units = [unit for unit in self.points.units if unit not in self.points.adding]

        def body(block: Block, number: SSAValue, now: SSAValue) -> None:
            copies = copied_into(self.operations_of(units), {self.block.args[0]: now}, block)
            for each, memory in zip(self.samples, made.block.args[3:]):
                use_note(each.access, copies, number, memory)

        StepsOfHost(self.loop, made).make(body)
        made.returns()
        drop_unused(made.op().body.walk())
        return made.op()

    def ended(self, made: PointFunction, copies: dict[Operation, Operation]) -> FuncOp:
        """A function that writes its own memory alone, and reads memory that no step writes."""
        drop_writes(copies)
        made.returns()
        drop_unused(made.op().body.walk())
        check_known_reads(made.op(), self.points.written, made.block.args)
        return made.op()

    def steps(self) -> FuncOp:
        """The function with the steps, whose loop uses lists at the end of a step."""
        kinds = [value.type for value in self.loop.iter_args]
        parts = [kind for each in self.lists for kind in each.parts]
        rows = MemRefType(i64, [DYNAMIC_INDEX])
        made = self.begin("steps", [IndexType(), rows, *kinds, *parts])
        count, numbers, *rest = made.block.args
        carried, lists = rest[: len(kinds)], rest[len(kinds) :]
        for argument, own in zip(carried, self.block.args[1:]):
            argument.name_hint = own.name_hint
        zero, one = (index_constant(n) for n in (0, 1))
        block = Block(arg_types=[IndexType(), *kinds])
        values: dict[SSAValue, SSAValue] = dict(zip(self.block.args, block.args))
        ops = [
            op
            for op in self.block.ops
            if op is not self.block.last_op and (not is_unit(op) or self.is_known_read(op))
        ]
        for argument, own in zip(block.args[1:], self.block.args[1:]):
            argument.name_hint = own.name_hint
        copied_into(ops, values, block)
        drop_unused(block.walk())
        if block.args[0].first_use is not None:
            raise CannotRaiseError(
                next(iter(block.args[0].uses)).operation,
                "updates of a step with points depend on the number of the step; use cells alone",
            )
        row = memref.LoadOp.get(numbers, [block.args[0]])
        block.add_op(row)
        # A field read before the additions of a step is noted at the end of an earlier step, behind
        # its additions.
        for kind, wanted in ((InjectOp, PointKind.INJECT), (SampleOp, PointKind.SAMPLE)):
            for place, each in enumerate(self.lists):
                if each.access.kind is wanted:
                    at, weights, table = lists[3 * place : 3 * place + 3]
                    field = values.get(each.field, each.field)
                    block.add_op(kind(field, (at, weights, table), row.res, each.entries, each.box))
        end = terminator_of(self.block, scf.YieldOp)
        block.add_op(scf.YieldOp(*[values.get(v, v) for v in end.operands]))
        turns = scf.ForOp(zero, count, one, carried, block)
        turns.location = self.loop.location
        made.block.add_ops([zero, one, turns])
        made.returns(turns.results)
        return made.op()

    def raise_steps(self, function: FuncOp) -> None:
        """Raise the loop of the steps. Raises CannotRaiseError unless kernels take all steps."""
        loops = [op for op in function.body.block.ops if isinstance(op, scf.ForOp)]
        raise_loop(loops[0], self.module, self.prefix)
