"""Sums with sorted terms have the bits of NumPy's sums in that order, on every executor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.passes import ModulePass

import timetile
from support.command_line import run
from support.executors import executors
from timetile import Field, Model
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.cells.factor_sums import FactorSumsPass
from timetile.passes.cells.sort_terms import SortTermsPass
from timetile.passes.tiling.split_sums import SplitSumsPass
from timetile.passes.time_loops import temporal_passes
from timetile.runtime.program.compiled_program import Executor

Offset = tuple[int, ...]
Array = np.ndarray[Any, Any]

STEPS = 3
SIZES = {1: (23,), 2: (11, 13)}


@dataclass(frozen=True)
class Leaf:
    """A cell, alone or times a number."""

    offset: Offset
    factor: float | None

    def value(self, read: Any) -> Any:
        """The leaf of symbols or of numbers; `read` is the cell at an offset."""
        return read(self.offset) if self.factor is None else self.factor * read(self.offset)

    sorted_value = value

    @property
    def last(self) -> Offset:
        """The last cell needed."""
        return self.offset


@dataclass(frozen=True)
class Scaled:
    """A sum in a product."""

    factor: float
    inner: Total

    def value(self, read: Any) -> Any:
        """The product in the order of the text."""
        return self.factor * self.inner.value(read)

    def sorted_value(self, read: Any) -> Any:
        """The product of the sorted sum."""
        return self.factor * self.inner.sorted_value(read)

    @property
    def last(self) -> Offset:
        """The last cell needed."""
        return self.inner.last


@dataclass(frozen=True)
class Total:
    """The sum or the difference of two nodes."""

    first: Node
    second: Node
    subtracts: bool

    def value(self, read: Any) -> Any:
        """The sum in the order of the text."""
        first, second = self.first.value(read), self.second.value(read)
        return first - second if self.subtracts else first + second

    @property
    def terms(self) -> Iterator[tuple[float, Node]]:
        """Signs and terms of the whole tree of sums."""
        for sign, node in ((1.0, self.first), (-1.0 if self.subtracts else 1.0, self.second)):
            if isinstance(node, Total):
                yield from ((sign * other, term) for other, term in node.terms)
            else:
                yield sign, node

    def sorted_value(self, read: Any) -> Any:
        """The sum of the terms by planes and rows, one after the other."""
        terms = sorted(self.terms, key=lambda term: term[1].last)
        total: Any = None
        for sign, term in terms:
            value = sign * term.sorted_value(read)
            total = value if total is None else total + value
        return total

    @property
    def last(self) -> Offset:
        """The last cell needed."""
        return max(self.first.last, self.second.last)


Node = Leaf | Scaled | Total


@st.composite
def sums(draw: st.DrawFn, rank: int) -> Total:
    """Nested sums of cells up to two cells away."""
    offsets = st.tuples(*[st.integers(-2, 2)] * rank)
    factors = st.sampled_from((0.3, -0.7, 1.1, 0.25))
    node: Any = st.builds(Leaf, offsets, st.one_of(st.none(), factors))
    for _ in range(3):
        total = st.builds(Total, node, node, st.booleans())
        node = st.one_of(node, total, total, st.builds(Scaled, factors, total))
    return draw(st.builds(Total, node, node, st.booleans()))


def model_of(total: Total) -> Model:
    """The step that computes a sum."""

    def step(u: Field) -> None:
        def read(offset: Offset) -> Any:
            return u[offset]

        u.next = total.value(read)

    return timetile.stencil(step)


def expected(total: Total, start: Array, steps: int) -> Array:
    """The steps by NumPy, with the terms of each sum sorted."""
    now = start.copy()
    probe = total_reach(total, now.ndim)
    for _ in range(steps):
        new = now.copy()
        inside = tuple(
            slice(low, size - high) for (low, high), size in zip(probe, now.shape, strict=True)
        )

        def read(offset: Offset, now: Array = now, inside: Any = inside) -> Array:
            moved = [
                slice(part.start + far, part.stop + far)
                for part, far in zip(inside, offset, strict=True)
            ]
            return now[tuple(moved)]

        new[inside] = total.sorted_value(read)
        now = new
    return now


def total_reach(total: Total, rank: int) -> list[tuple[int, int]]:
    """How far a sum reads before and behind the own cell, along each axis."""
    read: list[Offset] = []

    def note(offset: Offset) -> float:
        read.append(offset)
        return 1.0

    total.value(note)
    return [
        (max(0, -min(o[axis] for o in read)), max(0, max(o[axis] for o in read)))
        for axis in range(rank)
    ]


def sorting_only() -> tuple[ModulePass, ...]:
    """The passes that find time loops, with sorted terms, and without fused or joined products."""
    return tuple(
        SortTermsPass("on") if item.name == SortTermsPass.name else item
        for item in temporal_passes("off")
        if item.name != FactorSumsPass.name
    )


@given(st.sampled_from((1, 2)).flatmap(lambda rank: st.tuples(st.just(rank), sums(rank))))
def test_sorted_sums_are_those_of_numpy(drawn: tuple[int, Total]) -> None:
    rank, total = drawn
    start = np.random.default_rng(3).uniform(-1.0, 1.0, SIZES[rank])
    program = timetile.compile(
        model_of(total).module(start.shape), executor="numpy", passes=sorting_only(), cache=False
    )
    result = program(start.copy(), start.copy(), steps=STEPS)
    found = result.buffers[0]
    assert np.array_equal(found, expected(total, start, STEPS), equal_nan=True)


def star(cells: Any) -> Any:
    """Thirteen cells of a star, far planes and the own cell in an unlucky order."""
    far = [(3, 0), (-3, 0), (0, 1), (2, 0), (0, 0), (-2, 0), (1, 0)]
    far += [(0, -1), (-1, 0), (0, 3), (0, -3), (0, 2), (0, -2)]
    total = 0.07 * cells[far[0]]
    for place, offset in enumerate(far[1:]):
        total = total + (0.05 + 0.004 * place) * cells[offset]
    return total


def box(cells: Any) -> Any:
    """Nine cells, column by column."""
    total = 0.02 * cells[0, 0]
    for place in range(9):
        total = total + (0.1 + 0.003 * place) * cells[place % 3 - 1, place // 3 - 1]
    return total


def heat(cells: Any) -> Any:
    """A nested sum with far planes first."""
    return cells[0, 0] + 0.2 * (
        cells[1, 0] + cells[-1, 0] + cells[0, -1] + cells[0, 1] - 4 * cells[0, 0]
    )


STEPS_OF_CELLS = {"star": star, "box": box, "heat": heat}


@pytest.mark.parametrize("name", STEPS_OF_CELLS)
@pytest.mark.parametrize("depth", (1, 2))
def test_executors_agree_on_sorted_sums(name: str, depth: int) -> None:
    def step(u: Field) -> None:
        u.next = STEPS_OF_CELLS[name](u)

    model = timetile.stencil(step)
    start = np.random.default_rng(5).uniform(0.2, 0.3, (41, 75))
    found = [advanced(model, executor, depth, start) for executor in executors()]
    own = model.on(executor="numpy", cache=False).advance({"u": start}, steps=5)["u"]
    assert all(np.array_equal(found[0], other) for other in found[1:])
    assert not np.array_equal(found[0], own)


def advanced(model: Model, executor: Executor, depth: int, start: Array) -> Array:
    """The state after five steps with sorted sums."""
    chosen = model.on(executor=executor, depth=depth, fp_reassoc="on", cache=False)
    return chosen.advance({"u": start}, steps=5)["u"]


@pytest.mark.parametrize("form", ("rows", "halves", "none"))
def test_schedules_agree_on_sorted_sums(form: str) -> None:
    def step(u: Field) -> None:
        u.next = box(u)

    model = timetile.stencil(step)
    start = np.random.default_rng(5).uniform(0.2, 0.3, (41, 75))
    given_passes = (
        f"temporal-fusion{{depths=2}},device-tiling{{cells=4}},split-sums{{form={form}}},"
        "multi-queue-buffering,register-streaming,carry-halos,peel-boundaries"
    )
    module = model.module(start.shape)
    program = timetile.compile(
        module, executor="planes", passes=given_passes, fp_reassoc="on", cache=False
    )
    buffers = [start.copy(), start.copy()]
    result = program(*buffers, steps=5)
    expected_bits = advanced(model, "numpy", 1, start)
    assert np.array_equal(result.buffers[0], expected_bits)


def test_the_box_of_columns_is_split_only_when_sorted() -> None:
    def step(u: Field) -> None:
        u.next = box(u)

    text = str(timetile.stencil(step).module((41, 75)))
    stages = {}
    for mode in ("off", "on"):
        program = timetile.compile(
            text, executor="planes", fp_reassoc=mode, cache=False,
            passes=f"temporal-fusion{{depths=2}},device-tiling{{cells=4}},{SplitSumsPass.name}"
            "{form=rows},multi-queue-buffering,register-streaming,peel-boundaries",
        )  # fmt: skip
        stages[mode] = str(program.kernels.tiled).count("tile.apply")
    assert stages["on"] > stages["off"]


def test_flags_of_the_program_sort_sums_by_default() -> None:
    def step(u: Field) -> None:
        u.next = box(u)

    start = np.random.default_rng(5).uniform(0.2, 0.3, (41, 75))
    model = timetile.stencil(step)
    text = str(model.module(start.shape))
    allowed = re.sub(r"(arith\.(?:addf|mulf) %\S+, %\S+)", r"\1 fastmath<reassoc>", text)
    assert allowed.count("fastmath<reassoc>") >= 16
    runs: dict[str, tuple[str, FpReassoc]] = {
        "own": (text, "flags"),
        "flags": (allowed, "flags"),
        "off": (allowed, "off"),
        "on": (text, "on"),
    }
    ends: dict[str, Array] = {}
    for name, (source, mode) in runs.items():
        program = timetile.compile(source, executor="cpu", cache=False, fp_reassoc=mode)
        ends[name] = program(start.copy(), start.copy(), steps=4).buffers[0]
    assert np.array_equal(ends["flags"], ends["on"])
    assert np.array_equal(ends["off"], ends["own"])
    assert not np.array_equal(ends["on"], ends["own"])


def test_the_command_line_sorts_sums_on_request(tmp_path: Path) -> None:
    def step(u: Field) -> None:
        u.next = box(u)

    start = np.random.default_rng(5).uniform(0.2, 0.3, (41, 75))
    model = timetile.stencil(step)
    program, given, out = (tmp_path / name for name in ("box.mlir", "in.npz", "out.npz"))
    program.write_text(str(model.module(start.shape)))
    np.savez(given, arg0=start, arg1=start)
    line = f"run {program} --args {given} --steps 4 --out {out} --executor cpu --no-cache"
    assert run(f"{line} --fp-reassoc on") == 0
    expected_cells = model.on(executor="cpu", cache=False, fp_reassoc="on").advance(
        {"u": start}, steps=4
    )["u"]
    assert np.array_equal(np.load(out)["arg0"], expected_cells)
