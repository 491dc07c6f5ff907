"""What `timetile explain` and `CompiledProgram.explain` answer, as data: printers only lay it out.

An `Explanation` has one `LoopSummary` per time loop (how fast, what limits it, what can be
changed), sections with the details, and the remarks of the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """A label and a text beside it."""

    label: str
    text: str


@dataclass(frozen=True)
class Section:
    """A heading, facts, and a table with notes that say what its columns mean."""

    title: str
    facts: tuple[Fact, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Resources:
    """
    What one block of a kernel takes of a multiprocessor: `registers` and `spill_bytes` per thread,
    both None without the assembler, `shared_bytes` per block; and how many `blocks` of `warps`
    warps a multiprocessor holds, with the resource that allows no more of them.
    """

    shared_bytes: int
    registers: int | None = None
    spill_bytes: int | None = None
    blocks: int | None = None
    warps: int | None = None
    limit: str | None = None


@dataclass(frozen=True)
class Alternative:
    """A schedule that was not chosen: steps of a launch, cells of a thread, predicted GCells/s."""

    depth: int
    cells: tuple[int, ...]
    gcells_per_second: float


@dataclass(frozen=True)
class LoopSummary:
    """
    One time loop in short.

    `cells` is the extent of the hull of all cells that a step writes, `kernel` the kernel that most
    steps of a run are done by, `depth` its time steps. `gcells_per_second` is the cost model's
    prediction for launches of that kernel, `single_step_bound` what memory allows a program that
    advances one step per launch (both in 1e9 cell updates per second). `launch_seconds` is one
    launch, `overhead_seconds` the part of it that does not depend on the number of cells. `limit`
    is what the launch spends most of its time on. `tile` and `stored` are extents in cells: what a
    tile computes, and what it stores. `redundancy` is computed cells divided by useful ones. `fill`
    is the share of the device's resident blocks that the launch uses, None without the assembler.
    `advice` says what the user can change.
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


@dataclass(frozen=True)
class Explanation:
    """
    What became of a program. `str()` is the summary of every time loop, `full()` all sections too;
    a notebook shows the summary with the sections folded below it.
    """

    function: str
    loops: tuple[LoopSummary, ...]
    sections: tuple[Section, ...]
    remarks: tuple[str, ...]

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
