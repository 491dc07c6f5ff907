"""Speeds asked of real programs, on an H100 whose copies move 3.0 TB/s, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tables import NEAR, TYPES, Row, number, table

ASKED_COPY = 3.0
"""TB/s of a copy where speeds were asked for in GPts/s."""

Beside = Literal["speed", "bound", "fused", "without"]
"""
What is asked: a speed in GPts/s where copies move `ASKED_COPY`, or a share of the copy bound of the
step's kernels, of the bound of the step in one kernel, or of the speed of the step without layers.
"""


@dataclass(frozen=True)
class Target:
    """What is asked of a program: `least`, beside something measured or given."""

    program: str
    beside: Beside
    least: float
    elements: tuple[str, ...] = ("f32",)
    without: str = ""


BOTH = ("f32", "f64")

ONE_STEP = (
    Target("yee3", "speed", 55),
    Target("elastic_3d_so4", "speed", 25.5),
    Target("elastic2", "bound", 0.9),
    Target("acoustic_3d_so4", "bound", 0.9),
    Target("acoustic_3d_so8", "bound", 0.9),
    Target("vp_coupled_3d_so8", "speed", 80),
    Target("vardiff_3d_so4", "speed", 225),
    Target("lbm_d2q9", "bound", 0.85, ("f64",)),
    Target("lbm_d3q19", "bound", 0.8),
    Target("tti8", "fused", 0.8, BOTH),
    Target("tti13", "fused", 0.8, BOTH),
)
"""Near the memory's speed: several steps a launch count, too."""

BLOCKED = (
    Target("yee3", "speed", 105),
    Target("elastic_3d_so4", "speed", 27.8),
    Target("elastic_2d_so4", "bound", 2.2),
    Target("acoustic_2d_so4", "bound", 2.5),
    Target("acoustic_3d_so4", "bound", 1.15),
    Target("wave_3d_so4", "bound", 1.3),
    Target("wave_3d_so8", "bound", 0.92),
    Target("burgers3", "bound", 2),
    Target("grayscott3", "bound", 3),
    Target("swe", "bound", 1.5),
)
"""Past the memory's speed for one step."""

LAYERS = (
    Target("iso_regions", "without", 0.95, BOTH, "iso"),
    Target("tti_regions", "without", 0.9, BOTH, "tti8"),
    Target("acoustic_cpml", "without", 0.9, BOTH, "wave_3d_so8"),
    Target("elastic_cpml", "without", 0.9, BOTH, "elastic_3d_so4"),
    Target("yee3_cpml", "without", 0.9, BOTH, "yee3"),
)
"""Layers at the speed of the step without."""

COLUMNS = ("program", "type", "asked", "GPts/s asked", "best", "share", "met", "commit")

BYTES = "bytes allow"
"""The column with the bound of a step with layers beside the bound of the step without."""


@dataclass(frozen=True)
class Measured:
    """The rows of a program with an element type."""

    rows: Sequence[Row]
    copy: float

    def best_of(self, program: str, element: str) -> Row:
        """The row with the fastest run, of all starts and orders of terms."""
        return max(self.of(program, element), key=lambda row: row["gpts_per_s"])

    def without(self, target: Target, element: str) -> Row:
        """The fastest row of the step without layers, in the order of terms of the step with."""
        order = self.best_of(target.program, element)["fp_reassoc"]
        rows = (row for row in self.of(target.without, element) if row["fp_reassoc"] == order)
        return max(rows, key=lambda row: row["gpts_per_s"])

    def bytes_allow(self, target: Target, element: str) -> str:
        """How near to the step without layers the bytes of the layers' fields let a step come."""
        bounds = (
            row["copy_bound_one_step"]
            for row in (self.best_of(target.program, element), self.without(target, element))
        )
        return number(next(bounds) / next(bounds), 2)

    def of(self, program: str, element: str) -> list[Row]:
        """The rows of a program and type."""
        return [r for r in self.rows if (r["program"], r["dtype"]) == (program, element)]

    def fused_bound(self, program: str) -> float:
        """The copy bound of the step in one kernel in FP32, by the rows with fewest kernels."""
        return max(row["copy_bound_one_step"] for row in self.of(program, "f32"))

    def asked(self, target: Target, element: str) -> tuple[float, str]:
        """GPts/s asked on the GPU of the rows, and the target's words."""
        match target.beside:
            case "speed":
                words = f"{target.least:g} where a copy moves {ASKED_COPY} TB/s"
                return target.least * self.copy / ASKED_COPY, words
            case "bound":
                row = self.best_of(target.program, element)
                return target.least * row["copy_bound_one_step"], f"{target.least:g} of the bound"
            case "fused":
                bound = self.fused_bound(target.program) / (1 if element == "f32" else 2)
                return target.least * bound, f"{target.least:g} of one kernel's bound"
            case "without":
                row = self.without(target, element)
                return target.least * row["gpts_per_s"], f"{target.least:g} of {target.without}"


def cells_of(target: Target, measured: Measured) -> Iterator[tuple[str, ...]]:
    """A row of the table for each element type."""
    for element in target.elements:
        asked, words = measured.asked(target, element)
        row = measured.best_of(target.program, element)
        share = row["gpts_per_s"] / asked
        yield (
            f"{target.program}{', free order' if row['fp_reassoc'] == 'on' else ''}",
            TYPES[element],
            words,
            *((measured.bytes_allow(target, element),) if target.without else ()),
            number(asked, 1),
            number(row["gpts_per_s"], 1),
            number(share, 2),
            "yes" if share >= NEAR else "**no**",
            row["commit"].rpartition(" ")[2],
        )


def naive_words(rows: Sequence[Row]) -> str:
    """How the rows with a naive kernel compare with the kernel."""
    ratios = {
        (row["program"], row["dtype"], row["fp_reassoc"]): row["gpts_per_s"]
        / row["naive_gpts_per_s"]
        for row in rows
        if row["naive_gpts_per_s"] and row["start"] == "random"
    }
    (program, element, _), least = min(ratios.items(), key=lambda item: item[1])
    programs = len({name for name, *_ in ratios})
    kind = TYPES[element]
    reached = sum(ratio >= 1.1 for ratio in ratios.values())
    return (
        "1.1 times the naive kernel is asked of every program: "
        f"{reached} of {len(ratios)} rows of {programs} programs reach it; the least is "
        f"{least:.2f} ({program}, {kind})."
    )


def targets_section(rows: Sequence[Row], copy: float) -> str:
    """The tables of what was asked and what is reached, with a sentence before each."""
    measured = Measured(rows, copy)
    parts = [naive_words(rows), f"Met is what is asked, less {1 - NEAR:.0%}."]
    for words, targets in (
        ("One step near the memory's speed:", ONE_STEP),
        ("Past the memory's speed for one step, by several steps a launch:", BLOCKED),
        ("Absorbing layers beside the step without:", LAYERS),
    ):
        columns = (*COLUMNS[:3], BYTES, *COLUMNS[3:]) if targets is LAYERS else COLUMNS
        made = table(columns, (cells for each in targets for cells in cells_of(each, measured)))
        parts += [words, made]
    return "\n\n".join(parts)
