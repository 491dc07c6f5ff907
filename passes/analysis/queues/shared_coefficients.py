"""Coefficients fetched once for all levels of a kernel.

Every level of a kernel of several steps reads a coefficient's cells some stream steps after the
level before. One load serves all levels: asynchronous copies fill a ring of planes in shared
memory, and each level reads own cells of an older plane there. The ring is no larger than the rings
of a load for each level: their slots are powers of two.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from timetile.dialects.tile import ExchangeOp, KernelOp, LoadOp, Published, RoleKind
from timetile.passes.analysis.queues.lags import oldest_age


def is_coefficient(kernel: KernelOp, load: LoadOp) -> bool:
    """Whether a load fetches planes of a field that no step writes, of all axes."""
    if load.data is None or load.halo is not None or load.is_read_at_use:
        return False
    return kernel.argument_role(load.data).kind.data is RoleKind.CAPTURE


def serves_levels(kernel: KernelOp, load: LoadOp) -> bool:
    """Whether levels share a load of a coefficient, in a kernel that streams."""
    streams = kernel.stream_axis is not None
    return streams and kernel.steps.data > 1 and is_coefficient(kernel, load)


def oldest_copy(kernel: KernelOp, load: LoadOp) -> int:
    """
    The age, in stream steps, of the oldest plane that levels read from the copies of a load; 0 for
    a load whose planes live elsewhere.
    """
    if not serves_levels(kernel, load) or serves_neighbours(load):
        return 0
    return oldest_age(load.result, kernel.stream_axis)


def serves_neighbours(load: LoadOp) -> bool:
    """
    Whether readers in other warps find cells of a load in the ring of its copies for an exchange,
    or beside registers, as edges.
    """
    exchanges = (use.operation for use in load.result.uses)
    published = (each.what for each in exchanges if isinstance(each, ExchangeOp))
    return any(what.data is not Published.PLANE for what in published)


def lives_in_copies(queue: SSAValue) -> bool:
    """Whether readers find older planes of a queue in the copies of its load."""
    load = queue.owner
    if not isinstance(load, LoadOp):
        return False
    kernel = load.parent_op()
    return isinstance(kernel, KernelOp) and oldest_copy(kernel, load) > 0
