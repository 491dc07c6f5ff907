"""
Raises operations at points at the end of a step: the update that writes the field takes the lists.

Before:
```
%t = memref.load %rows[%step] : memref<?xi64>
stencil.store %v to %b(<[1], [7]>)
temporal.inject %b at %places weights %w table %f columns 2 step %t in <[1], [7]>
```
After:
```
temporal.update %b = @cell(...) in <[1], [7]> points(%rows, %places, %w, %f)
  uses [#temporal.points<inject 0 columns 2>]
```
1. The step's number is read from a series, and the lists and tables are fields outside the loop.
2. The last update that touches the field has the operation's box; otherwise an update that copies
   each cell onto itself takes the list. An operation at points stands behind all updates.
3. No field is periodic: images of cells have no list. Kernels continue all fields that go on beyond
   the edges: no edge is an update of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import LoopOp, PointKind, PointOp, PointsAttr, UpdateOp
from timetile.dialects.temporal.boundary import Kind
from timetile.passes.analysis.edges import continues_in_kernels, why_split
from timetile.passes.analysis.launches.liveness import live_arguments
from timetile.passes.raising.cells import copying_cell
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import memory_of
from timetile.passes.rewriting import unique_symbol


def point_operations(block: Block) -> list[PointOp]:
    """The operations at points of a step, in order."""
    return [op for op in block.ops if isinstance(op, PointOp)]


@dataclass
class PointTaker:
    """
    Gives the lists of operations at points to updates of a step. `rename` has the loop's own names
    of fields, `functions` the cell functions of the step so far.
    """

    module: ModuleOp
    prefix: str
    rename: Mapping[SSAValue, SSAValue]
    series: Mapping[SSAValue, SSAValue]
    functions: list[FuncOp]

    def take(
        self, ops: Sequence[PointOp], made: Sequence[UpdateOp], block: Block
    ) -> list[UpdateOp]:
        """
        The updates of a step, with the lists. Raises CannotRaiseError for an operation that no
        update takes.
        """
        updates = list(made)
        for op in ops:
            check_place(op, block, self.rename)
            if op.step not in self.series:
                raise CannotRaiseError(op, "the row is no number of a series at the step")
            if any(is_periodic(update) for update in updates):
                raise CannotRaiseError(
                    op,
                    "a field is periodic, and kernels of several steps compute images of its cells "
                    "without points; use another boundary along all axes for such kernels",
                )
            field = self.rename.get(op.field, op.field)
            if not any(field in update.targets for update in updates):
                raise CannotRaiseError(op, "the step does not write the field with points")
            number = last_user(updates, field)
            if not ends_in(updates[number], field, op):
                number = len(updates)
                updates.append(self.copy(op, field))
            updates[number] = with_points(updates[number], op, field, self.series[op.step])
        return updates

    def copy(self, op: PointOp, field: SSAValue) -> UpdateOp:
        """An update that leaves the cells with points as they are, behind all others."""
        rank = len(op.box.lb)
        cell = copying_cell(field, rank)
        name = unique_symbol(self.module, f"{self.prefix}_cell", self.functions)
        self.functions.append(cell.function(name, [0]))
        made = UpdateOp([field], name, cell.sources, cell.taps, op.box)
        made.location = op.location
        return made


def is_periodic(update: UpdateOp) -> bool:
    """Whether an update computes images of cells: other sides have none outside the bounds."""
    return any(Kind.PERIODIC in boundary.kinds for boundary in update.continued)


def check_place(op: PointOp, block: Block, rename: Mapping[SSAValue, SSAValue]) -> None:
    """
    Raise CannotRaiseError for an operation before an update, or with lists that the loop carries.
    """
    behind: Operation | None = op.next_op
    while behind is not None:
        if isinstance(behind, stencil.StoreOp | stencil.ApplyOp | stencil.LoadOp):
            raise CannotRaiseError(op, "an update follows the points; put points last in the step")
        behind = behind.next_op
    for part in (op.places, op.weights, op.table):
        if part in rename or memory_of(part).owner is block:
            raise CannotRaiseError(op, "the loop carries the list; make the list before the loop")


def last_user(updates: Sequence[UpdateOp], field: SSAValue) -> int:
    """The number of the last update that reads or writes a field that some update writes."""
    users = [k for k, u in enumerate(updates) if field in u.targets or field in u.sources]
    return users[-1]


def ends_in(update: UpdateOp, field: SSAValue, op: PointOp) -> bool:
    """Whether an update writes the field's cells in the operation's box."""
    return field in update.targets and update.box == op.box


def check_edges(ops: Sequence[PointOp], loop: LoopOp) -> None:
    """Raise CannotRaiseError for points of a step whose edges become updates of boxes."""
    is_split = any(update.beyond for update in loop.updates) and not continues_in_kernels(loop)
    if ops and is_split:
        raise CannotRaiseError(
            ops[0],
            f"{why_split(loop)}: the edges are updates of their own, and take no points; give both "
            "sides of each axis one boundary for all fields, or keep both sides",
        )


def check_noted(ops: Sequence[PointOp], loop: LoopOp, rename: Mapping[SSAValue, SSAValue]) -> None:
    """
    Raise CannotRaiseError for samples of a field that no later step reads: kernels of several steps
    compute the field's last values only.
    """
    samples = [op for op in ops if op.KIND is PointKind.SAMPLE]
    live, own = live_arguments(loop) if samples else (), loop.body.block.args
    for op in samples:
        role = own.index(rename.get(op.field, op.field))
        if not live[loop.rotation.index(role)]:
            raise CannotRaiseError(
                op,
                "the sampled field is read by no later step, and kernels of several steps compute "
                "the last values only; sample a field read by steps",
            )


def with_points(update: UpdateOp, op: PointOp, field: SSAValue, step: SSAValue) -> UpdateOp:
    """The update with one more list, and the series with the step's numbers."""
    if update.points and update.points[0] is not step:
        raise CannotRaiseError(op, "points of one update count their rows by one series")
    target = list(update.targets).index(field)
    use = PointsAttr(op.KIND, target, op.columns.data, field_bounds(field))
    new = UpdateOp(
        list(update.targets), update.cell, list(update.sources), update.tap_list, update.box,
        list(update.scalars), update.index_axes, update.outside,
        () if update.beyond is None else update.beyond.data,
        points=[*(update.points or [step]), op.places, op.weights, op.table],
        uses=[*update.point_uses, use], inner=update.inner is not None,
    )  # fmt: skip
    new.location = update.location
    return new
