"""What holds kernels of real programs: the fullest part of a GPU, and the speed if always busy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from tables import TYPES, Row, number, table

LANES = 32
"""Threads of an instruction."""

COLUMNS = (
    *(
        "program",
        "type",
        "order",
        "cells, warps",
        "kernel",
        "instructions a cell and step",
        "issue slots",
    ),
    *("shared memory and L1", "memory, of a copy", "GPts/s", "ceiling"),
)


def busy_of(row: Row, copy: float) -> dict[str, float]:
    """The shares of the time that the parts of the GPU are busy, of a copy's speed for memory."""
    memory = row["bytes"] / row["microseconds"] / 1e6 / copy
    return {"issue": row["issue_slots"], "near": row["near_memory"], "memory": memory}


def ceiling_of(rows: Sequence[Row], cells: int, copy: float) -> tuple[float, float]:
    """
    GPts/s of the kernels of a step one after the other, and the ceiling: each kernel as fast as its
    fullest part allows.
    """
    spent = sum(row["microseconds"] for row in rows)
    least = sum(row["microseconds"] * max(busy_of(row, copy).values()) for row in rows)
    done = cells * rows[0]["steps"] / 1e3
    return done / spent, done / least


def cells_of(rows: Sequence[Row], cells: int, copy: float) -> Iterator[tuple[str, ...]]:
    """A row of the table for each kernel; the last one has the speed of all."""
    speed, most = ceiling_of(rows, cells, copy)
    for row in rows:
        busy = busy_of(row, copy)
        fullest = max(busy.values())
        last = row is rows[-1]
        yield (
            row["program"],
            TYPES[row["dtype"]],
            "free" if row["fp_reassoc"] == "on" else "",
            " and ".join(
                word
                for word in row["row"].split()
                if word.replace(",", "").isdigit() and "," in word
            ),
            row["kernel"].removeprefix(row["program"] + "_"),
            number(row["instructions"] * LANES / cells / row["steps"]),
            *(
                f"**{number(each, 2)}**" if each == fullest else number(each, 2)
                for each in busy.values()
            ),
            number(speed, 1) if last else "",
            number(most, 1) if last else "",
        )


def ceilings_section(report: Mapping[str, Any]) -> str:
    """The table of counted kernels; rows of a step's kernels follow one another."""
    made: list[tuple[str, ...]] = []
    for _, rows in groupby(report["rows"], key=lambda row: row["row"]):
        made += cells_of(list(rows), report["cells"], report["copy_tb_per_s"])
    return table(COLUMNS, made)
