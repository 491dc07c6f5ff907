"""The steady loops of kernels with default schedules, and the operations of a stream step."""

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
from support.few_schedules import model_alone
from support.programs import program_text
from timetile.dialects import simt
from timetile.dialects.simt import SHARED_SPACE, address_space
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.options import Halos

INDEXING = (arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.CmpiOp, llvm.GEPOp)
"""Addresses, slots of rings, and tests whether a plane is stored."""


RENAMING = (simt.SplitOp, simt.JoinOp, scf.YieldOp)
"""Names of registers or of register halves."""


WORDS: dict[Element, int] = {"f64": 2, "f32": 1}
"""Cells moved by an operation: a shuffle moves one cell, an access of a thread at most four."""


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
    """The steady loops of a program's deepest kernel, and the cells of a thread."""

    interior: scf.ForOp
    guarded: scf.ForOp
    depth: int
    schedule: Schedule
    wide: int
    """Cells of the widest access to a thread's row: at most 16 bytes, and a divisor of the row."""
    narrow: int
    """Cells of the widest access to memory: also a divisor of the field's rows."""
    cut: int
    """Ends of a tile's stored row within a vector: a lane stores a single cell there."""

    @property
    def work(self) -> int:
        """Cells of a thread in a stream step: a part of a plane in each level."""
        return prod(self.schedule.cells) * self.depth


@cache
def code_of(case: Case, depth: int | None = None, halos: Halos = "apart") -> Code:
    """
    The result of the default pipeline, at the depth chosen by the model or at a given depth.
    """
    program = sum_program(case.element, list(case.offsets))(case.domain)
    compiled = timetile.compile(
        program_text(program), executor="simt", cache=False, depth=depth, halos=halos
    )
    with model_alone():
        deepest = compiled.kernels.facts[0][0]
    schedule = loops_of(compiled.kernels.tiled)[0].decisions
    interior, guarded = steady_loops(compiled.kernels.hardware(deepest.name))
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
    The steady loops of the interior copy and of the guarded copy. A copy is two or three loops over
    equal stages, in one block; the others also test for planes outside, and are longer. A loop over
    the columns of a chunk surrounds all, and loops that fill the pipeline store nothing.
    """
    copies: dict[Block | None, list[scf.ForOp]] = {}
    for op in module.walk():
        if isinstance(op, scf.ForOp) and not any(
            isinstance(inner, scf.ForOp) for inner in op.body.walk()
        ):
            copies.setdefault(op.parent, []).append(op)
    storing = [
        found
        for loops in copies.values()
        if (found := [loop for loop in loops if "simt.store global" in kinds(loop)])
    ]
    assert [len(loops) for loops in storing] in ([2, 2], [3, 3])
    for loops in storing:
        yield min(loops, key=lambda loop: sum(1 for _ in loop.walk()))


def kinds(loop: scf.ForOp) -> set[str]:
    """The operations of a loop."""
    return {kind_of(op) for op in loop.body.walk()}


def kind_of(op: Operation) -> str:
    """The counted name of an operation: the name, and for accesses the memory."""
    if isinstance(op, simt.LoadOp | simt.StoreOp | simt.OverrideOp):
        return f"{op.name} {'shared' if address_space(op.buffer) == SHARED_SPACE else 'global'}"
    return op.name


def per_step(loop: scf.ForOp) -> dict[str, float]:
    """All operations of a stream step except indexing: unexpected operations show, too."""
    turns = integer_constant(loop.step)
    assert turns
    found = [kind_of(op) for op in loop.body.walk() if not isinstance(op, INDEXING + RENAMING)]
    return {kind: number / turns for kind, number in Counter(found).items()}


def shared_by_all(case: Case, code: Code) -> dict[str, float]:
    """The operations independent of the layout of a tile."""
    rows = code.work // code.schedule.cells[-1]
    return {
        # A cell of a level takes a rounding for each term of the stencil: all but one are fused.
        "arith.mulf": code.work,
        "math.fma": (len(case.offsets) - 1) * code.work,
        # In each level one plane is shuffled once: a star's middle plane, or a box's newest
        # plane, as sums are cut into rows. On each side of a thread's row, the cells within the
        # radius belong to other lanes.
        "nvvm.shfl.sync": 2 * case.radius * rows * WORDS[case.element],
        # The loaded plane is copied ahead, in one group, with a single wait.
        "nvvm.cp.async.commit.group": 1,
        "nvvm.cp.async.wait.group": 1,
    }


DEPTHS = (3, 6)
