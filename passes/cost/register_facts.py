"""The numbers of a kernel under a setting that decide the registers of a thread.

Samples of assembled kernels keep the numbers (`benchmarks/samples/registers-sm_90.jsonl`): the
parameters of registers are refitted without the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.analysis.queues.storage import power_of_two
from timetile.passes.cost.facts import KernelFacts, StageSpans
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.shared_memory import slots_of_copies
from timetile.passes.cost.taps import cells_beside

WORDS_COUNTED = 512
"""
Words of cells' values beyond which the count ends, twice the registers of a thread: no kernel with
more of them is taken, and cells of many stages take a minute to count.
"""


@dataclass(frozen=True)
class StageTaps:
    """The taps of a stage: reads of planes copied to shared memory, and shuffled cells."""

    read: int
    """Taps of copied planes."""
    row: int
    """Cells of a thread's row with the neighbours read by these taps."""
    shuffled: int
    """Taps of other planes."""
    around: int
    """Cells around a thread's cells read by these taps."""


@dataclass(frozen=True)
class RegisterFacts:
    """The numbers of a kernel under a setting; words and registers have 32 bits."""

    streams: bool
    """Tiles advance along a streaming axis."""
    axes: int
    """Axes of a tile's plane."""
    threads: int
    """Threads of a multiprocessor."""
    steps: int
    """Time steps of a launch."""
    words: int
    """Words of the widest cell."""
    words_per_cell: int
    """Words of the planes of all queues, for each cell of a thread."""
    cells: int
    """Cells of a plane held by a thread."""
    rows: int
    """Rows of a plane held by a thread."""
    row_cells: int
    """Cells of a row held by a thread."""
    loads: int
    """Loads of planes."""
    row_reach: int
    """The largest distance, in cells, of taps along the last axis."""
    live_words: int
    """Words of a cell's own values alive at once."""
    body_words: int
    """
    Words alive at once for all cells of a thread: `live_words` at least, counted up to about
    `WORDS_COUNTED`.
    """
    scalar_words: int
    """Words of scalars read by cells."""
    fixed_words: int
    """Words of cells of fields of fewer axes, read once for all stream steps."""
    boxed: int
    """Stages computing a part of the bounds."""
    dividing: int
    """Stages with quotients or roots."""
    approximates: bool
    """Some quotients or roots are approximate."""
    sums_early: bool
    """Planes enter sums on arrival."""
    holds_oldest: bool
    """Some operation reads the oldest plane of a queue when the newest has arrived."""
    splits: bool
    """Warps arrive at a barrier and wait later."""
    wide_copies: bool
    """Copies serve readers farther than one cell across a warp's border."""
    message_edge: int
    """Rows sent to either neighbouring block through global memory."""
    around: int
    """Cells around a thread's cells read by any tap."""
    has_corners: bool
    """Some tap differs from the cell along every in-plane axis."""
    odd_slots: int
    """Slots for copies, in rings with a number of slots that is no power of two."""
    stages: tuple[StageTaps, ...]
    """The stages, each kind once."""
    carries_sums: bool = False
    """Several partial sums pass from one part of a sum to the next."""

    @cached_property
    def shape(self) -> TileShape:
        """The shape of a tile."""
        return TileShape((self.streams, self.axes))


def register_facts(facts: KernelFacts, setting: Setting) -> RegisterFacts:
    """The numbers of a kernel under a setting."""
    return with_bodies(least_register_facts(facts, setting), facts, setting)


def with_bodies(least: RegisterFacts, facts: KernelFacts, setting: Setting) -> RegisterFacts:
    """The numbers of a kernel with the values of several cells alive at once."""
    words = body_words(facts, setting)
    return least if words == least.body_words else replace(least, body_words=words)


def least_register_facts(facts: KernelFacts, setting: Setting) -> RegisterFacts:
    """The numbers of a kernel under a setting, without values of several cells alive at once."""
    rings = [slots_of_copies(e, setting, 1) for e in facts.exchanges if e.copies]
    edges = [exchange.edges[0] for exchange in facts.exchanges]
    return RegisterFacts(
        streams=facts.shape.streams,
        axes=facts.shape.axes,
        threads=setting.layout.threads * setting.occupancy,
        steps=facts.steps,
        words=facts.words,
        words_per_cell=facts.words_per_cell,
        cells=setting.thread_cells,
        rows=setting.rows,
        row_cells=setting.row_cells,
        loads=len(facts.loads),
        row_reach=facts.row_reach,
        live_words=facts.live_words,
        body_words=facts.live_words,
        scalar_words=facts.scalar_words,
        fixed_words=sum(cells.registers(setting.patch) for cells in facts.fixed),
        boxed=facts.boxed,
        dividing=facts.dividing,
        approximates=facts.approximates,
        sums_early=facts.sums_early,
        holds_oldest=facts.holds_oldest,
        splits=setting.splits,
        wide_copies=any(e.copies and e.edges[0] > 1 for e in facts.exchanges),
        message_edge=max(edges, default=0) if setting.has_messages else 0,
        around=cells_beside(setting.patch, facts.spans),
        has_corners=facts.has_corners,
        odd_slots=sum(slots for slots in rings if slots != power_of_two(slots)),
        carries_sums=facts.carries_sums,
        stages=tuple(dict.fromkeys(stage_taps(taps, setting) for taps in facts.stage_spans)),
    )


def stage_taps(taps: StageSpans, setting: Setting) -> StageTaps:
    """The taps of a stage, for a thread's part of a plane."""
    row = setting.row_cells + taps.row if taps.read else 0
    return StageTaps(taps.read, row, taps.shuffled, cells_beside(setting.patch, taps.spans))


def body_words(facts: KernelFacts, setting: Setting) -> int:
    """
    Words of the cells' own values alive at once: of one cell, or, where cells share values, of all
    cells of a thread. Values shared by cells of several planes are kept from one stream step to
    another, for every level. The count ends beyond `WORDS_COUNTED`.
    """
    most = kept = 0
    for cells in [stage.sharing for stage in facts.stages if stage.sharing is not None]:
        plane = cells.words((1, *setting.patch))
        most = max(most, plane)
        if facts.shape.streams:
            kept += cells.words((1 + facts.natural_period, *setting.patch)) - plane
        if most + kept > WORDS_COUNTED:
            break
    return max(facts.live_words, most + kept)
