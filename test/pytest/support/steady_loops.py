"""The steady loops of kernels that default schedules make, and what is in a step of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import gcd, prod

from xdsl.dialects import arith, llvm, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

import timetile
from support.catalogue import Domain, star, sum_program
from support.description import Element
from support.expressions import Offset
from support.programs import program_text
from timetile.dialects import simt
from timetile.dialects.simt import SHARED_SPACE, address_space
from timetile.dialects.tile import KernelOp
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.schedule import Schedule
from timetile.runtime.kernels.of_program import Halos, loops_of

INDEXING = (arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.CmpiOp, llvm.GEPOp)
"""Addresses, slots of rings, and whether a plane is one to store."""


RENAMING = (simt.SplitOp, simt.JoinOp, scf.YieldOp)
"""Names of registers or of their halves."""


WORDS: dict[Element, int] = {"f64": 2, "f32": 1}
"""Of a cell: a shuffle moves one, an access of a thread at most four."""


@dataclass(frozen=True)
class Case:
    """A weighted sum of a cell's neighbours."""

    name: str
    element: Element
    offsets: tuple[Offset, ...]
    domain: Domain

    @property
    def radius(self) -> int:
        return max(abs(d) for offset in self.offsets for d in offset)


def plate(name: str, element: Element, offsets: list[Offset], size: int = 8192) -> Case:
    return Case(name, element, tuple(offsets), (size, size))


J2D5PT = plate("j2d5pt-f64", "f64", star(2, 1))


J3D7PT = Case("j3d7pt-f64", "f64", tuple(star(3, 1)), (512, 512, 512))


@dataclass(frozen=True)
class Code:
    """The steady loops of a program's deepest kernel, and what one of its threads holds."""

    interior: scf.ForOp
    guarded: scf.ForOp
    depth: int
    schedule: Schedule
    wide: int
    """Cells of the widest access to a thread's row: 16 bytes at most, and they divide it."""
    narrow: int
    """Cells of the widest access to memory: they also divide the rows of the field."""
    cut: int
    """
    Ends of what a tile stores of a row that lie within a vector: a lane stores one of its cells
    there.
    """

    @property
    def work(self) -> int:
        """Cells that a thread computes in a stream step: of each level, its part of a plane."""
        return prod(self.schedule.cells) * self.depth


@cache
def code_of(case: Case, depth: int | None = None, halos: Halos = "apart") -> Code:
    """What the default pipeline makes, at the depth that it chooses or that is given."""
    program = sum_program(case.element, list(case.offsets))(case.domain)
    compiled = timetile.compile(
        program_text(program), executor="simt", cache=False, depth=depth, halos=halos
    )
    deepest = compiled.kernels.facts[0][0]
    schedule = Schedule.from_attribute(loops_of(compiled.kernels.tiled)[0].schedule)
    interior, guarded = steady_loops(compiled.kernels.nvvm(deepest.name))
    wide = gcd(schedule.cells[-1], 4 // WORDS[case.element])
    narrow = gcd(wide, case.domain[-1] + 2 * case.radius)
    last = Geometry(kernel_named(compiled.kernels.tiled, deepest.name)).axes[-1]
    cut = sum(end % narrow != 0 for end in (last.overlap_low, last.overlap_low + last.useful))
    return Code(interior, guarded, deepest.steps, schedule, wide, narrow, cut)


def kernel_named(module: ModuleOp, name: str) -> KernelOp:
    """The kernel of a placed program."""
    return next(op for op in module.ops if isinstance(op, KernelOp) and op.sym_name.data == name)


def steady_loops(module: ModuleOp) -> Iterator[scf.ForOp]:
    """
    The interior copy's, then the guarded one's. A copy is three loops over the same stages, in one
    block; the first and the last also ask whether planes lie outside: they are longer. The loop
    over the columns that a chunk goes on in is around all of them, and those that fill the pipeline
    store nothing.
    """
    copies: dict[Block | None, list[scf.ForOp]] = {}
    for op in module.walk():
        if isinstance(op, scf.ForOp) and not any(
            isinstance(inner, scf.ForOp) for inner in op.body.walk()
        ):
            copies.setdefault(op.parent, []).append(op)
    storing = [
        [loop for loop in loops if "simt.store global" in kinds(loop)] for loops in copies.values()
    ]
    assert [len(loops) for loops in storing] == [3, 3]
    for loops in storing:
        yield min(loops, key=lambda loop: sum(1 for _ in loop.walk()))


def kinds(loop: scf.ForOp) -> set[str]:
    """What a loop does."""
    return {kind_of(op) for op in loop.body.walk()}


def kind_of(op: Operation) -> str:
    """The word under which an operation is counted: its name, and for accesses where they go."""
    if isinstance(op, simt.LoadOp | simt.StoreOp | simt.OverrideOp):
        return f"{op.name} {'shared' if address_space(op.buffer) == SHARED_SPACE else 'global'}"
    return op.name


def per_step(loop: scf.ForOp) -> dict[str, float]:
    """
    All operations of one stream step but indexing, so that what is not expected shows as well.
    """
    turns = integer_constant(loop.step)
    assert turns
    found = [kind_of(op) for op in loop.body.walk() if not isinstance(op, INDEXING + RENAMING)]
    return {kind: number / turns for kind, number in Counter(found).items()}


def shared_by_all(case: Case, code: Code) -> dict[str, float]:
    """What does not depend on how the threads hold a tile."""
    rows = code.work // code.schedule.cells[-1]
    return {
        # A cell of a level takes as many roundings as the stencil has terms: all but one are fused.
        "arith.mulf": code.work,
        "math.fma": (len(case.offsets) - 1) * code.work,
        # Of a level one plane is shuffled, once: a star's middle one, or a box's newest one, as its
        # sum is cut into rows. To each side of a thread's row, the cells within the radius are
        # others'.
        "nvvm.shfl.sync": 2 * case.radius * rows * WORDS[case.element],
        # The loaded plane is copied ahead, in one group, that is waited for once.
        "nvvm.cp.async.commit.group": 1,
        "nvvm.cp.async.wait.group": 1,
    }


DEPTHS = (4, 8)
