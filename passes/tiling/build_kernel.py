"""Builds a kernel of several time steps: stages over queues of planes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from timetile.dialects.syntax import cell_type
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.boundary import Kind
from timetile.dialects.tile import (
    ApplyOp,
    KernelOp,
    LoadOp,
    RoleKind,
    StoreOp,
)
from timetile.dialects.tile.queues import made_queue_type
from timetile.passes.analysis.edges import loop_boundary
from timetile.passes.analysis.geometry.outside import is_read_outside
from timetile.passes.analysis.kernel_numbers import kernel_numbers
from timetile.passes.analysis.launches.liveness import (
    is_own_scratch,
    loop_rotation,
    overwrites,
    updates_of_cycles,
    written_bounds,
)
from timetile.passes.analysis.queues.lags import assign_lags, oldest_age
from timetile.passes.analysis.queues.shared_coefficients import serves_levels
from timetile.passes.raising.narrow_fields import read_field
from timetile.passes.rewriting import replace_apply
from timetile.passes.tiling.kernel_arguments import KernelArguments


@dataclass
class Version:
    """What a buffer of the loop holds at some point of the kernel."""

    origin: int
    """The argument of the loop that named the buffer before the kernel's first step."""
    queue: SSAValue | None = None


class KernelBuilder:
    """Builds the stages of a kernel of a loop."""

    def __init__(self, loop: LoopOp, steps: int, *, store_all: bool):
        self.loop, self.steps, self.store_all = loop, steps, store_all
        self.bounds = written_bounds(loop)
        self.rank = len(self.bounds.lb)
        self.moves = loop_rotation(loop)
        self.of_cycles = updates_of_cycles(loop) if self.moves.common_halos else []
        """The updates that may take the cells beside their box from any version of their cycle."""
        self.numbers = {} if store_all else kernel_numbers(loop)
        """The arguments of the loop that take numbers in place of cells."""
        self.beyond = loop_boundary(loop)
        """The boundary by which kernels continue fields."""
        self.goes_on = self.beyond is not None and Kind.KEEP not in self.beyond.kinds
        """Whether fields go on along all axes: no cell of a halo is read."""
        self.single_steps = loop.depths is not None and loop.depth_list == (1,)
        """Whether all kernels of the loop advance one step."""
        self.block = Block()
        self.arguments = KernelArguments(self.block, loop)
        self.captures = loop.captures
        self.captured = [read_field(value) for value in self.captures]
        """The fields in memory behind the captured fields."""
        self.narrow: dict[int, SSAValue] = {}
        """The loaded queues of captured fields of fewer axes, by number."""
        buffers = loop.body.block.args
        sources = [k for k in range(len(buffers)) if self.moves.live[k]]
        for k in sources:
            self.arguments.of(RoleKind.SOURCE, k, buffers[k])
        for k in self.stored():
            self.arguments.of(RoleKind.TARGET, k, buffers[k])
        for k in range(len(buffers)):
            self.arguments.of(RoleKind.HALO, k, buffers[k])
        for k, memory in enumerate(self.captured):
            self.arguments.of(RoleKind.CAPTURE, k, memory.field)
        for step, value in product(range(steps), self.arguments.scalars):
            self.arguments.number(value, step)

    def stored(self) -> list[int]:
        """The arguments of the loop, after the kernel's steps, whose buffers the kernel stores."""
        written = self.moves.written
        if not self.store_all:
            roles = range(len(self.moves.live))
            return [k for k in roles if self.moves.is_moved(k) or k in self.numbers]
        return [
            k
            for k, source in enumerate(self.loop.rotation)
            if written[source] and not self.is_forgotten(k)
        ]

    def is_forgotten(self, role: int) -> bool:
        """Whether the buffer of a role is the loop's own scratch, read only in the writing step."""
        return is_own_scratch(self.loop, role) and not self.moves.live[role]

    def load(
        self,
        data: SSAValue | None,
        halo: SSAValue | None,
        along: tuple[int, ...] | None = None,
    ) -> SSAValue:
        """Add a load of a field, with cells `along` fewer axes or all; return the loaded queue."""
        self.block.add_op(load := LoadOp(data, halo, 0, along=along))
        return load.result

    def home(self, role: int) -> SSAValue | None:
        """The source of a role, if launches find data and halo together; otherwise None."""
        at_home = self.moves.has_home(role, single_steps=self.single_steps)
        return self.arguments.get(RoleKind.SOURCE, role) if at_home else None

    def halo(self, role: int) -> SSAValue:
        """
        The field with the cells outside the bounds of a role's versions; with common halos, one for
        all roles that take turns.
        """
        alike = self.moves.cycle_of(role) if self.moves.common_halos else (role,)
        homes = (self.home(k) for k in sorted(alike))
        at_home = next((field for field in homes if field is not None), None)
        first = min(alike)
        return at_home or self.arguments.of(RoleKind.HALO, first, self.loop.body.block.args[first])

    def current(self, version: Version) -> SSAValue:
        """The queue of a version, loaded if no step of the kernel has made the version."""
        if version.queue is None:
            source = self.arguments.get(RoleKind.SOURCE, version.origin)
            # A source at home is stored with a halo around the inner cells.
            is_home = self.goes_on or self.home(version.origin) is not None
            version.queue = self.load(source, None if is_home else self.halo(version.origin))
        return version.queue

    def coefficient(self, number: int) -> SSAValue:
        """
        The queue of a captured field. Loads of a field of fewer axes keep no plane: one load serves
        all steps.
        """
        memory = self.captured[number]
        field = self.arguments.of(RoleKind.CAPTURE, number, memory.field)
        if memory.axes is None:
            return self.load(field, None)
        if number not in self.narrow:
            self.narrow[number] = self.load(field, None, memory.axes)
        return self.narrow[number]

    def apply(self, update: UpdateOp, versions: list[Version], step: int) -> None:
        """Add the stage of one update in a step. The results become the targets' versions."""
        own = self.loop.body.block.args
        queues: list[SSAValue] = []
        for source in update.sources:
            if source in own:
                queues.append(self.current(versions[own.index(source)]))
            else:
                queues.append(self.coefficient(self.captures.index(source)))
        roles = [own.index(target) for target in update.targets]
        targets = [versions[role] for role in roles]
        whole = overwrites(update, self.bounds)
        outside: list[SSAValue] = []
        for role, target in zip(roles, targets):
            if self.goes_on:
                continue
            if whole:
                outside.append(self.load(None, self.halo(target.origin)))
            elif update in self.of_cycles:
                outside.append(self.current(versions[self.live_role(role)]))
            else:
                outside.append(self.current(target))
        apply = ApplyOp(
            update.cell,
            queues,
            update.tap_list,
            self.rank,
            [made_queue_type(cell_type(target), 0) for target in update.targets],
            outside,
            [self.arguments.number(scalar, step) for scalar in update.scalars],
            update.index_axes,
            None if whole else update.box,
            self.points(update, step),
            update.point_uses,
        )
        self.block.add_op(apply)
        for target, result in zip(targets, apply.res):
            target.queue = result

    def live_role(self, role: int) -> int:
        """The first live role that takes turns with a role."""
        return next(k for k in self.moves.cycle_of(role) if self.moves.live[k])

    def points(self, update: UpdateOp, step: int) -> list[SSAValue]:
        """The number of a step, and the fields of an update's lists of points."""
        if not update.points:
            return []
        row, captures = update.points[0], self.captures
        lists = [
            self.arguments.of(RoleKind.CAPTURE, captures.index(field), field)
            for field in update.points[1:]
        ]
        return [self.arguments.number(row, step), *lists]

    def build(self, name: str, stream: int | None) -> KernelOp:
        """The whole kernel, with lags, without a layout."""
        versions = [Version(k) for k in range(len(self.loop.buffers))]
        for step in range(self.steps):
            for update in self.loop.updates:
                self.apply(update, versions, step)
            versions = [versions[source] for source in self.loop.rotation]
        for k in self.stored():
            target = self.arguments.of(RoleKind.TARGET, k, self.loop.body.block.args[k])
            store = StoreOp(self.current(versions[k]), target, number=self.numbers.get(k))
            self.block.add_op(store)
        kernel = KernelOp(name, self.arguments.roles, self.steps, stream, self.bounds, self.block)
        kernel.beyond = self.beyond
        erase_idle_stages(kernel)
        assign_lags(kernel)
        share_loads(kernel)
        return kernel


def share_loads(kernel: KernelOp) -> None:
    """
    Merge loads of equal fields, halos and lags: updates of a step share a coefficient. A load also
    serves readers of a greater lag if planes are kept as long for others. Where copies of a
    coefficient serve all levels, loads of all lags are merged.
    """
    known: dict[tuple[object, ...], list[LoadOp]] = {}
    for stage in kernel.stages:
        if not isinstance(stage, LoadOp):
            continue
        alike = known.setdefault((stage.data, stage.halo), [])
        first = next((each for each in alike if serves_both(kernel, each, stage)), None)
        if first is None:
            alike.append(stage)
            continue
        moves = first.lag != stage.lag and not serves_levels(kernel, first)
        stage.result.replace_all_uses_with(first.result)
        Rewriter.erase_op(stage)
        if moves:
            assign_lags(kernel)
    assign_lags(kernel)


def serves_both(kernel: KernelOp, one: LoadOp, other: LoadOp) -> bool:
    """Whether one of two loads of a field serves the readers of both, and keeps no plane longer."""
    if one.lag == other.lag or serves_levels(kernel, one):
        return True
    if one.keeps_no_plane:
        return False
    early, late = sorted((one, other), key=lambda each: each.lag)
    kept, asked = (oldest_age(each.result, kernel.stream_axis) for each in (early, late))
    return late.lag - early.lag + asked <= kept


def erase_idle_stages(kernel: KernelOp) -> None:
    """
    Erase stages without readers, and unneeded `else` operands of results: readers tap their own
    cell only, inside the bounds.
    """
    for stage in reversed(kernel.stages):
        if isinstance(stage, StoreOp):
            continue
        if all(result.first_use is None for result in stage.results):
            Rewriter.erase_op(stage)
        elif (
            isinstance(stage, ApplyOp)
            and stage.replaces_cells
            and not any(map(is_read_outside, stage.res))
        ):
            replace_apply(stage, outside=[])
