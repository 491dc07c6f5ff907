"""The kernel of a step's first part as a tile that keeps planes.

Updates of the inside of a step with layers often are the step without layers: a tile that streams
planes reads each cell of a wide stencil once, where kernels that read memory take every tap from
the first-level cache. The kernel advances one step, and stores the cells of the part alone, scratch
read by later parts among them; kernels of the layers follow.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from timetile.dialects.syntax import encode_integers
from timetile.dialects.temporal import LoopOp, ScratchOp, UpdateOp
from timetile.dialects.tile import KernelOp, RoleKind
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.analysis.queues.lags import assign_lags
from timetile.passes.rewriting import copied_with_module
from timetile.passes.tiling.build_kernel import KernelBuilder
from timetile.passes.tiling.exchanges import add_exchanges, publish


def first_updates(loop: LoopOp, count: int) -> LoopOp | None:
    """
    A loop with the first updates alone, of single steps, in a copy of the loop's module; scratch
    read by later updates is a field of the copy's function. None where fields or scalars from
    outside the loop have other numbers.
    """
    copy = copied_with_module(loop)
    captures, scalars = copy.captures, copy.scalars
    for role in roles_read(copy.updates[count:], copy):
        give_field(copy, role)
    for update in list(copy.updates)[count:]:
        update.detach()
        update.erase()
    own = copy.captures, copy.scalars
    if own != (captures[: len(own[0])], scalars[: len(own[1])]):
        return None
    copy.schedule = copy.inside = None
    copy.depths = encode_integers((1,))
    return copy


def give_field(loop: LoopOp, role: int) -> None:
    """Make the loop's buffer with a role an argument of the function, in place of scratch."""
    scratch, function = loop.buffers[role].owner, loop.parent_op()
    if not isinstance(scratch, ScratchOp) or not isinstance(function, FuncOp):
        return
    block = function.body.block
    field = block.insert_arg(scratch.field.type, len(block.args))
    Rewriter.replace_op(scratch, [], [field])
    function.update_function_type()


def roles_read(updates: Sequence[UpdateOp], loop: LoopOp) -> list[int]:
    """The arguments of a loop that some updates read."""
    read = {source for update in updates for source in update.sources}
    return [k for k, buffer in enumerate(loop.body.block.args) if buffer in read]


def drop_unused_fields(kernel: KernelOp) -> None:
    """Drop a kernel's arguments without a reader, such as halos around cells computed by others."""
    block, roles = kernel.body.block, list(kernel.roles)
    for number, argument in reversed(list(enumerate(block.args))):
        if argument.first_use is None:
            block.erase_arg(argument)
            del roles[number]
    kernel.roles = ArrayAttr(roles)


def inside_kernel(loop: LoopOp, count: int, schedule: Schedule, name: str) -> KernelOp | None:
    """
    The kernel of a loop's first updates with a schedule of tiles that keep planes; None if the tile
    leaves no cell, or cells outside the bounds lie in other fields than the data.
    """
    step = first_updates(loop, count)
    if step is None:
        return None
    step.schedule = ScheduleAttr(schedule)
    stream = schedule.stream_axis(len(written_bounds(step).lb))
    kernel = KernelBuilder(step, 1, store_all=True).build(name, stream)
    drop_unused_fields(kernel)
    if any(role.kind.data is RoleKind.HALO for role in kernel.roles):
        return None
    kernel.layout, kernel.occupancy = schedule.layout(), IntAttr(schedule.occupancy)
    kernel.schedule = step.schedule
    add_exchanges(kernel)
    assign_lags(kernel)
    trial = kernel.clone()
    publish(trial, None, schedule.ahead)
    try:
        Geometry(trial)
    except ValueError:
        return None
    return kernel
