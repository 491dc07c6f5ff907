"""
Writes walkthrough.md: heat in a plate, through every pass. `--check` fails for an outdated page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

import timetile
from timetile.dialects import simt
from timetile.dialects.tile import KernelOp
from timetile.lowering.convert_gpu_to_nvvm import ConvertGpuToNvvmPass
from timetile.lowering.division.expand_division import ExpandDivisionPass
from timetile.lowering.lower_tile_to_gpu import LowerTileToGpuPass
from timetile.lowering.plan_launches import PlanLaunchesPass
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.lowering.threads.carry_cells import CarryCellsPass
from timetile.lowering.threads.order_threads import OrderThreadsPass
from timetile.lowering.threads.share_cells import ShareCellsPass
from timetile.passes.cells.contract_cells import ContractCellsPass
from timetile.passes.cells.expand_cells import ExpandCellsPass
from timetile.passes.cells.expand_powers import ExpandPowersPass
from timetile.passes.cells.share_subexpressions import ShareSubexpressionsPass
from timetile.passes.cells.simplify_cells import SimplifyCellsPass
from timetile.passes.loops.temporal_fusion import TemporalFusionPass
from timetile.passes.raising.raise_time_loop import RaiseTimeLoopPass
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.passes.targets.isa import ISAS
from timetile.passes.tiling.carry_halos import CarryHalosPass
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.peel_boundaries import PeelBoundariesPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass
from timetile.passes.tiling.split_sums import SplitSumsPass
from timetile.runtime.kernels.options import run_passes
from timetile.runtime.loading.modules import load

HERE = Path(__file__).parent
PROGRAM = HERE.parent / "examples" / "heat2d.mlir"
PAGE = HERE / "walkthrough.md"
KERNEL = "heat2d_d2"
PLATE = 4096
FIELD = f"!stencil.field<[-1,{PLATE + 1}]x[-1,{PLATE + 1}]xf64>"

Excerpt = Callable[[ModuleOp], str]


# Excerpts: shown parts of the module.


def tidy(text: str) -> str:
    """IR with the field type under a short name, and long heads on several lines."""
    text = text.replace(FIELD, "!field")
    return re.sub(r" (roles|layout|variants|schedule|kernels) (?=[\[#{])", r"\n      \1 ", text)


def whole(module: ModuleOp) -> str:
    """The whole module."""
    return "\n".join(str(op) for op in module.ops)


def cell(module: ModuleOp) -> str:
    """The cell function."""
    return str(next(op for op in module.ops if isinstance(op, FuncOp)))


def host(module: ModuleOp) -> str:
    """The function of the program."""
    functions = (op for op in module.ops if isinstance(op, FuncOp))
    return str(next(op for op in functions if op.sym_name.data == "heat2d"))


def kernel(module: ModuleOp) -> str:
    """The kernel of two steps."""
    kernels = (op for op in module.ops if isinstance(op, KernelOp))
    return str(next(op for op in kernels if op.sym_name.data == KERNEL))


def kernel_and_host(module: ModuleOp) -> str:
    return f"{kernel(module)}\n{host(module)}"


def kernel_loops(module: ModuleOp) -> list[scf.ForOp]:
    """
    The loops over stream steps of the kernel of two time steps, the interior variant's first:
    without the surrounding loop over the columns of a chunk.
    """
    lowered = (op for op in module.ops if isinstance(op, gpu.ModuleOp))
    own = next(op for op in lowered if op.sym_name.data == KERNEL)
    loops = [op for op in own.walk() if isinstance(op, scf.ForOp)]
    return [loop for loop in loops if not any(isinstance(op, scf.ForOp) for op in loop.body.walk())]


def is_steady(loop: scf.ForOp) -> bool:
    """
    Whether the loop stores, unlike loops that fill the pipeline, and needs no cells outside the
    bounds.
    """
    kinds = {type(op) for op in loop.body.walk()}
    return simt.StoreOp in kinds and simt.OverrideOp not in kinds


def steady_loop(module: ModuleOp) -> list[str]:
    """
    The loop of the interior variant without guards, between head and tail: the first line and the
    lines of the first of two turns.
    """
    loop = next(filter(is_steady, kernel_loops(module)))
    head, *lines = str(loop).splitlines()
    head = re.sub(r"^(%\d+),.*, (%\d+) = scf", r"\1, ..., \2 = scf", head)
    head = re.sub(r"\((%\d+ = %\d+),.*(, %\d+ = %\d+)\) -> .*", r"(\1, ...\2) -> (...) {", head)
    # A turn waits for a plane first and stores last.
    waits = [k for k, line in enumerate(lines) if "wait.group" in line]
    stores = [k for k, line in enumerate(lines) if "simt.store" in line and k < waits[1]]
    return [head, *lines[: stores[-1] + 1]]


def turn(module: ModuleOp) -> str:
    """The first turn of the steady loop."""
    return "\n".join([*steady_loop(module), "  ..."])


def hardware(module: ModuleOp) -> str:
    """The operations of nvvm and llvm in the first turn of the steady loop."""
    words = ("nvvm.", "llvm.", "simt.")
    return "\n".join(line for line in steady_loop(module)[1:] if any(w in line for w in words))


def ptx(module: ModuleOp) -> str:
    """The end of the first turn of the steady loop, as PTX."""
    own = [f for f in kernels_of(module) if f.sym_name.data == KERNEL]
    lines = print_module(own, ISAS["sm_90"].ptx_version, "sm_90").splitlines()
    # A loop has two waits, one a turn; ahead of the loops a chunk waits for all copies of the
    # chunk before, with 0.
    waits = [k for k, line in enumerate(lines) if re.search(r"wait_group [1-9]", line)]
    before = next(k for k, loop in enumerate(kernel_loops(module)) if is_steady(loop))
    start = waits[2 * before]
    return "\n".join(["\t...", *lines[start - 6 : start + 18], "\t..."])


# The page.


@dataclass(frozen=True)
class Section:
    """A pass, its work, and the shown result."""

    steps: tuple[ModulePass, ...]
    title: str
    text: str
    excerpt: Excerpt | None = None
    language: str = "mlir"


OPENING = """\
# Heat in a plate, pass by pass

This page is made by `docs/make_walkthrough.py`, which runs the passes and prints what they leave; a
test keeps it current. The program is `examples/heat2d.mlir`, compiled for two time steps per pass
over memory, so that everything fits on a page (left to itself the compiler goes deeper), on a plate
of {plate} x {plate} cells (smaller ones are not streamed). `!field` stands for `{field}`: the
plate, and one cell of halo on every side.
"""

CLOSING = """\
## Running it

The script also ran the program as it stands in the file, on 256 x 256 cells, for {steps} steps:
with NumPy from the IR after `contract-cells`, and with an interpreter of the per-thread code, which
tracks what is unset and which accesses are ordered. All buffers, halos included, were equal bit for
bit, as they are on a GPU: no pass after `contract-cells` changes which operations make a cell, or
their order.
"""

SECTIONS = (
    Section(
        (),
        "The program",
        """\
What a frontend emits, or a person writes: xDSL's `stencil` dialect inside an ordinary `scf.for`. A
step reads one field and writes the other; the `scf.yield` swaps them. A field is memory with
bounds; the store's bounds, `<[0, 0], [4096, 4096]>`, say which cells the step writes. What lies
outside is halo and keeps what the caller put there.""",
        host,
    ),
    Section(
        (RaiseTimeLoopPass(),),
        "raise-time-loop",
        """\
The loop becomes one operation that says what it computes and nothing about how. `rotate [1, 0]`:
after a step, `%old` names the buffer that `%new` named, and the other way round. The step's
arithmetic is a function of scalars, held once; its arguments are the *taps* of the update, in
order. From here on the time loop belongs to the compiler. A loop that has another form stays as it
is, with a remark that says why.""",
        whole,
    ),
    Section(
        (
            ExpandPowersPass(),
            ExpandCellsPass(),
            SimplifyCellsPass(),
            ContractCellsPass(),
            ShareSubexpressionsPass(),
        ),
        "expand-powers, expand-cells, simplify-cells, contract-cells, share-subexpressions",
        """\
This cell has no powers, no integers, no quotients by constants and nothing that is computed twice,
which the first three and the last of these passes look for. Products and sums become fused
multiply-adds, as `nvcc` does by default, but here, once, before any schedule is chosen. No later
pass contracts, and the PTX is printed with explicit rounding, which the assembler leaves alone.
That is why all schedules, and the CPU, compute the same bits. (`fp-contract=off` leaves the cell as
it was.)""",
        cell,
    ),
    Section(
        (TemporalFusionPass((2,)), ChooseSchedulePass()),
        "temporal-fusion, choose-schedule",
        """\
`temporal-fusion{depths=2}` writes down for which depths there will be kernels; 1 is always among
them. `choose-schedule` picks the rest from a model of the target: who holds a tile, how many cells
a thread has, where planes are kept. It is all on the loop, as an attribute that the later passes
read unless their own options say otherwise, and that a person may write instead.""",
        host,
    ),
    Section(
        (DeviceTilingPass(),),
        "device-tiling",
        """\
Each depth becomes a kernel: a list of *stages*, one per time level. A tile is streamed plane by
plane (here: row by row, `stream 0`), and a `!tile.queue` is the sequence of planes that one version
of one buffer takes. An operation runs once per stream step. At step i the newest plane of a queue
of lag L is plane i - L; so the second stage, of lag 2, taps the first, of lag 1, at the plane made
in this step (for offset +1), one step ago (0) and two steps ago (-1).

The first stage's `else` says what lies outside the bounds: the halo of the buffer that this step
writes, read from memory. The second stage needs none, as nobody reads its neighbours. The roles
tell the arguments apart: `%src` and `%dst` hold data and may be scratch memory in a longer plan,
`%old` and `%new` are the program's own buffers, of which a kernel reads only the halos: here that
of `%new`, as `%src` comes with the right one around it.""",
        kernel_and_host,
    ),
    Section(
        (SplitSumsPass(), MultiQueueBufferingPass()),
        "split-sums, multi-queue-buffering",
        """\
`split-sums` leaves this star as it is (for a box, `form=rows` or `form=lanes` would make a chain of
partial sums, one stage for each row or column). `multi-queue-buffering` gives every queue a home.
Here planes stay in registers: each thread keeps its own cells of the two older planes, and the
stream loop will be unrolled by two, so that planes age by renaming. The field is fetched some
planes `ahead`. With `storage=shared` all queues would share a circular buffer in shared memory
instead.""",
        kernel,
    ),
    Section(
        (RegisterStreamingPass(), CarryHalosPass(), PeelBoundariesPass()),
        "register-streaming, carry-halos, peel-boundaries",
        """\
`register-streaming` finds nothing to do in a kernel whose queues are in registers and whose tiles
are single warps. (Where a tile has several warps, neighbours in other warps are published through
shared memory; this pass shrinks what is published to the edges and lets it be read a step later.)
`carry-halos` has nothing to do at a depth of two: from the third level on, a level would take its
cells outside the bounds from the level two before it, which is of the same buffer.
`peel-boundaries` decides on two lowered copies: tiles inside the bounds, and tiles on the rim,
which test for them. Both come from the same stages. The stream is cut into chunks of `planes` rows
each so that the launch ends early.""",
        kernel,
    ),
    Section(
        (LowerTileToGpuPass(),),
        "lower-tile-to-gpu",
        """\
The code of one thread. Each variant is a loop over stream steps with a guarded head and tail around
a steady loop without any test along the stream; this is the steady loop of the interior. (Ahead of
the head others leave out the levels whose first row is not due yet.) A lane holds four cells; its
neighbours' are shuffled from the lanes beside it. The field's next row arrives through a ring in
shared memory of which every lane reads only what it copied itself, so nobody waits for anybody. The
loop carries two rows of `%src` and two of the first time level. `simt.mark` marks which stage an
operation came from.""",
        turn,
    ),
    Section(
        (OrderThreadsPass(), ShareCellsPass(), CarryCellsPass(), ExpandDivisionPass()),
        "order-threads, share-cells, carry-cells, expand-division",
        """\
The newest row enters every sum last. All that does not need it, of both time levels, now comes
first, the last level first: it runs while the row is on its way, and each partial sum takes the
place of the oldest row, which has just been read for the last time. What is left after the wait is
one multiply-add per cell and level. That is also what lets two unrolled copies do without moves.
The other three have nothing to do here: differences to a neighbour would be computed once for both
cells (`share-cells`), those between two turns carried along (`carry-cells`), and quotients and
roots of a row become multiply-adds now, with one branch for all their special cases.""",
        turn,
    ),
    Section(
        (ConvertGpuToNvvmPass(),),
        "convert-gpu-to-nvvm",
        """\
Thread numbers, shuffles, asynchronous copies and barriers become operations of (a mirror of) MLIR's
`nvvm` dialect, buffers become `llvm` pointers; these are the lines of the same loop that changed,
or that the PTX printer will have to look at. A shuffle of a double is two, of its halves. A mask
stays a boolean operand and becomes a predicate. Printed generically (`xdsl-opt
--print-op-generic`), real MLIR parses this level, given `--allow-unregistered-dialect` for the few
operations of `simt` in it.""",
        hardware,
    ),
    Section(
        (),
        "-t ptx",
        """\
PTX, from tables: one instruction per operation. Rounding is explicit everywhere (`fma.rn.f64`).
These lines are the end of a step: wait for the row, take it from the ring, start the copy of a
later one, and then the last term of every cell, level by level.""",
        ptx,
        "",
    ),
)

LAUNCHES = Section(
    (PlanLaunchesPass(100),),
    "plan-launches",
    """\
The host's side is IR as well. For 100 steps (`plan-launches{steps=100}`): kernels of two steps from
buffer to buffer, and the last steps one by one, straight into the program's own buffers, so that in
the end each buffer holds what the unfused program leaves in it, whatever the number of steps. Halo
arguments are always the program's own buffers, in the roles that they have at the launch's first
step. A source has its halo around it: after every second step that is the first buffer's, so data
alternates between that buffer and a scratch one that began as a copy of it. (With an odd depth it
is each buffer's own in turn, and no scratch is needed. A scratch buffer is added only where no
order of launches does without.) Where the number of steps is known only at the call, the runtime
makes this plan per call.""",
    host,
)


def section(item: Section, module: ModuleOp) -> str:
    """Run the passes of a section and show the results."""
    run_passes(item.steps, module)
    shown = "" if item.excerpt is None else tidy(item.excerpt(module))
    return f"## {item.title}\n\n{item.text}\n\n```{item.language}\n{shown}\n```\n"


def page() -> str:
    """The whole page."""
    text = PROGRAM.read_text().replace("257", str(PLATE + 1)).replace("256", str(PLATE))
    module = load(text)
    parts = [OPENING.format(field=FIELD, plate=PLATE)]
    tiled: ModuleOp | None = None
    for item in SECTIONS:
        parts.append(section(item, module))
        if any(isinstance(step, PeelBoundariesPass) for step in item.steps):
            tiled = module.clone()
    assert tiled is not None
    parts.append(section(LAUNCHES, tiled))
    parts.append(CLOSING.format(steps=check_values(5)))
    return "\n".join(parts)


def check_values(steps: int) -> int:
    """Run with two executors; AssertionError unless all buffers are equal."""
    start = np.random.default_rng(0).random((258, 258))
    ends: list[np.ndarray] = []
    for executor in ("cpu", "simt"):
        buffers = start.copy(), start[::-1].copy()
        timetile.compile(PROGRAM, executor=executor, depth=2, cache=False)(*buffers, 0, steps=steps)
        ends.append(np.stack(buffers))
    assert np.array_equal(ends[0], ends[1])
    return steps


def main() -> None:
    made = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made)
    elif not PAGE.exists() or PAGE.read_text() != made:
        sys.exit("docs/walkthrough.md is not current; run `make docs`")


if __name__ == "__main__":
    main()
