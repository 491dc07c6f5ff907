"""The answers of `timetile explain` and `CompiledProgram.explain`, as data: printers only lay them
out.

An `Explanation` has one `LoopSummary` for each time loop (speed, limits, possible changes),
sections with details, and the remarks of the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """A label and a text."""

    label: str
    text: str


@dataclass(frozen=True)
class Section:
    """A heading, facts, and a table with notes on its columns."""

    title: str
    facts: tuple[Fact, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Resources:
    """
    What one block of a kernel takes: `registers` and `spill_bytes` of a thread, both None
    without the assembler, `shared_bytes` of the block. `blocks` blocks of `warps` warps fit a
    multiprocessor, limited by the resource `limit`. `spill_words` are the 32-bit words spilled in a
    turn of the loop inside the domain.
    """

    shared_bytes: int
    registers: int | None = None
    spill_bytes: int | None = None
    blocks: int | None = None
    warps: int | None = None
    limit: str | None = None
    spill_words: int | None = None


@dataclass(frozen=True)
class Alternative:
    """A schedule not chosen: steps of a launch, cells of a thread, predicted GCells/s."""

    depth: int
    cells: tuple[int, ...]
    gcells_per_second: float


@dataclass(frozen=True)
class LoopSummary:
    """
    One time loop in short.

    - `cells`: the extent of the box around all cells that a step writes.
    - `kernel`: the kernel of most steps of a run; `depth`: its time steps.
    - `gcells_per_second`: the cost model's prediction for launches of the kernel;
      `single_step_bound`: the bound by memory of a program with one step per launch (both in 1e9
      cell updates per second).
    - `measured`: what `timetile tune` measured for the program, in words; None without a record.
    - `scaled`: a sentence on the prediction for a part on which no kernel was measured; None for a
      part with measured kernels.
    - `launch_seconds`: one launch; `overhead_seconds`: the part of a launch independent of the
      number of cells.
    - `limit`: the resource taking most of the launch's time.
    - `tile`, `stored`: extents in cells of a tile's computed and stored cells.
    - `redundancy`: computed cells divided by useful cells.
    - `fill`: the share of the device's resident blocks used by the launch; None without the
      assembler.
    - `advice`: possible changes by the user.
    - `points`: the lists of points, and what they cost, in words; None without points.
    - `edges`: how fields go on beyond their edges, and what the edges cost, in words; None for kept
      edges.
    - `series`: the numbers of series that a step reads, in words; None without.
    """

    title: str
    cells: tuple[int, ...]
    element: str
    radius: int
    bytes_read: int
    bytes_written: int
    flops: int
    target: str
    kernel: str
    depth: int
    gcells_per_second: float
    single_step_bound: float
    launch_seconds: float
    overhead_seconds: float
    limit: str
    tile: tuple[int, ...]
    stored: tuple[int, ...]
    blocks: int
    threads: int
    redundancy: float
    resources: Resources
    fill: float | None
    alternative: Alternative | None
    advice: tuple[str, ...]
    measured: str | None = None
    scaled: str | None = None
    points: str | None = None
    edges: str | None = None
    series: str | None = None


@dataclass(frozen=True)
class SweepSummary:
    """
    One sweep along an axis in short.

    - `cells`: the extent of the box; `lines`: the lines along the axis.
    - `kept`: the targets whose cells of places before lie in registers, with the number of places.
    - `bytes_read`, `bytes_written`, `flops`: of a cell.
    - `bound`: 1e9 cells per second, by memory alone.
    - `places_of_turn`: places loaded at once; `ahead`: the distance of cells asked for, in places.
    - `beside`: the lines of a thread, beside each other; `ring`: the turns of places in a ring in
      shared memory, 0 for none.
    - `parts`: the parts of a line that go on side by side, a thread each; 0 where a line has an
      order of its own.
    - `group`, `slots`: the lines of a warp, and the segments of each line in shared memory; 0 where
      threads read lines of their own.
    - `registers`, `spill_bytes`: of a thread; None without the assembler.
    - `advice`: possible changes by the user.
    """

    title: str
    axis: int
    direction: str
    cells: tuple[int, ...]
    element: str
    kept: str
    bytes_read: int
    bytes_written: int
    flops: int
    target: str
    bound: float
    kernel: str
    lines: int
    blocks: int
    threads: int
    places_of_turn: int
    ahead: int
    beside: int
    ring: int
    parts: int
    group: int
    slots: int
    registers: int | None
    spill_bytes: int | None
    advice: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """
    The explanation of a program. `str()` is the summary of every time loop and every sweep along an
    axis, `full()` all sections too; a notebook shows the summary with folded sections below.
    """

    function: str
    loops: tuple[LoopSummary, ...]
    sections: tuple[Section, ...]
    remarks: tuple[str, ...]
    sweeps: tuple[SweepSummary, ...] = ()

    def __str__(self) -> str:
        from timetile.runtime.explain.text import as_text

        return as_text(self, full=False)

    def full(self) -> str:
        """The summary and all sections, as text."""
        from timetile.runtime.explain.text import as_text

        return as_text(self, full=True)

    def _repr_html_(self) -> str:
        from timetile.runtime.explain.html import as_html

        return as_html(self)
