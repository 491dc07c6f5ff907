"""
The trial kernels of a loop: for comparing schedules, a kernel for each form, built once for all
layouts of the form.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import Form, LayoutAttr
from timetile.dialects.tile.schedule import Schedule, default_stream
from timetile.passes.analysis.cells.cell_functions import cell_functions
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.analysis.queues.lags import assign_lags
from timetile.passes.cost.facts import KernelFacts, facts_of
from timetile.passes.cost.stage_facts import KnownCells
from timetile.passes.scheduling.kernel_forms import KernelForm
from timetile.passes.scheduling.schedule_space import radii_of_step, shuffles_several_planes
from timetile.passes.tiling.device_tiling import KernelBuilder
from timetile.passes.tiling.exchanges import add_exchanges, publish
from timetile.passes.tiling.register_streaming import delay_exchanges
from timetile.passes.tiling.split_sums import split_kernel


class TrialKernels:
    """The trial kernels of a loop."""

    def __init__(self, loop: LoopOp, module: ModuleOp):
        """`module` has the cell functions of the loop."""
        self.loop, self.module = loop, module
        self.rank = len(written_bounds(loop).lb)
        self.far = radii_of_step(loop)
        """Largest distance, in cells, of a read of one step along each axis."""
        self.narrowest = min(CELL_BYTES[element_type(buffer)] for buffer in loop.buffers)
        """Bytes of the narrowest cells of the loop's buffers."""
        self.several_planes = shuffles_several_planes(loop)
        self.known: dict[KernelForm, KernelFacts | None] = {}
        self.cells = KnownCells()
        """The facts of whole cells, equal at all depths."""

    def stream(self, *, resident: bool) -> int | None:
        """The streaming axis of resident or of other tiles; None without a stream."""
        return None if resident else default_stream(self.rank)

    def shape(self, schedule: Schedule) -> TileShape:
        """The shape of a schedule's tile."""
        streams = self.stream(resident=schedule.resident) is not None
        return TileShape((streams, len(schedule.cells)))

    def facts(self, depth: int, schedule: Schedule) -> KernelFacts | None:
        """
        The facts of a kernel for layouts of the schedule's form. None if no step reads cells of an
        earlier step, or if the sums cannot be split in this form.
        """
        form = KernelForm.of(schedule, depth, self.far, self.narrowest)
        if form not in self.known:
            self.known[form] = self.build(form, schedule.layout())
        return self.known[form]

    def build(self, form: KernelForm, layout: LayoutAttr) -> KernelFacts | None:
        """Facts about a kernel of some form; any layout in that form will do."""
        builder = KernelBuilder(self.loop, form.depth, store_all=form.depth == 1)
        builder.single_steps = form.depth == 1
        kernel = builder.build("trial", self.stream(resident=form.is_resident))
        if not kernel.stages:
            return None
        # The trial has a scratch module: splitting sums adds cell functions.
        scratch = ModuleOp([*(f.clone() for f in cell_functions(self.module)), kernel])
        if form.sums is not Form.NONE and not split_kernel(kernel, scratch, form.sums):
            return None
        kernel.layout = layout
        add_exchanges(kernel)
        assign_lags(kernel)
        publish(kernel, None, int(form.copies))
        delay_exchanges(kernel, max(form.delay, form.every), always=form.split)
        # Parts of sums are functions of the scratch module only.
        return facts_of(kernel, scratch, self.cells if form.sums is Form.NONE else None)
