"""Facts about a program's time loops, found in the IR once: short runs are made again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp, ScratchOp, UpdateOp
from timetile.dialects.verified import terminator_of
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.launches.liveness import written_cells
from timetile.passes.raising.raise_time_loop import TIME_LOOP
from timetile.runtime.host.parameters import counts_steps


@dataclass(frozen=True)
class LoopFacts:
    """
    Facts of one time loop: captured fields, scalars, `cells` updated by a step, the roles that name
    written data after the last step, `strides`, numbers required to be 1 or more: the steps of the
    loop in the source, and whether the loop lies in a step of a time loop of the host.
    """

    captures: tuple[SSAValue, ...]
    scalars: tuple[SSAValue, ...]
    cells: int
    latest: tuple[int, ...]
    strides: tuple[SSAValue, ...]
    is_inner: bool


class KnownLoops:
    """The facts of a program's time loops."""

    def __init__(self):
        self.known: dict[LoopOp, LoopFacts] = {}

    def of(self, loop: LoopOp) -> LoopFacts:
        """The facts of a loop, computed once."""
        if loop not in self.known:
            args = loop.body.block.args
            written = {args.index(t) for update in loop.updates for t in update.targets}
            written |= {role for layer, role in stored_apart(loop) if layer in written}
            latest = tuple(k for k, source in enumerate(loop.rotation) if source in written)
            self.known[loop] = LoopFacts(
                tuple(loop.captures),
                tuple(loop.scalars),
                written_cells(loop),
                latest,
                tuple(strides_of(loop.steps)),
                is_inside_step(loop),
            )
        return self.known[loop]


def stored_apart(loop: LoopOp) -> Iterator[tuple[int, int]]:
    """
    The roles of a loop's scratch that a sweep copies to other buffers of the loop, each with the
    role of the buffer: layers are stored alone during the steps (`passes/loops/store_layers.py`).
    """
    roles = {buffer: role for role, buffer in enumerate(loop.buffers)}
    for layer, buffer in enumerate(loop.buffers):
        for use in buffer.uses if isinstance(buffer.owner, ScratchOp) else ():
            update = use.operation
            sweep = update.parent_op()
            if isinstance(update, UpdateOp) and isinstance(sweep, LoopOp):
                args = sweep.body.block.args
                targets = (sweep.buffers[args.index(target)] for target in update.targets)
                yield from ((layer, roles[target]) for target in targets if target in roles)


def has_stored_layers(loop: LoopOp) -> bool:
    """
    Whether sweeps copy layers for a loop: cells of the loop's buffers, or of coefficients alone
    (`passes/loops/store_layers.py`).
    """
    around, fields = loop.parent_op(), (*loop.buffers, *loop.captures)
    if loop.sweep is not None or not any(isinstance(f.owner, ScratchOp) for f in fields):
        return False
    inner = around.walk() if around is not None else ()
    sweeps = (op for op in inner if isinstance(op, LoopOp) and op.sweep is not None)
    return any(copies_layers(sweep, loop) for sweep in sweeps)


def copies_layers(sweep: LoopOp, loop: LoopOp) -> bool:
    """
    Whether a sweep copies cells between a loop's scratch and other buffers of the loop, or to
    scratch that the loop reads: the loop goes on in a later call as in the same call.
    """
    module, args = sweep.get_toplevel_object(), sweep.body.block.args
    assert isinstance(module, ModuleOp)
    for update in sweep.updates:
        fields = [sweep.buffers[args.index(target)] for target in update.targets]
        fields += update.sources
        block = cell_function(module, update).body.block
        is_copy = list(terminator_of(block, ReturnOp).operands) == list(block.args)
        kinds = {isinstance(field.owner, ScratchOp) for field in fields}
        if len(fields) != 2 or len(kinds) != 2 or not is_copy:
            return False
        if fields[0] not in loop.captures and not set(fields) <= {*loop.buffers}:
            return False
    return True


def is_inside_step(loop: LoopOp) -> bool:
    """Whether a time loop of the host surrounds a loop, whose steps then are no time steps."""
    around = loop.parent_op()
    while around is not None and TIME_LOOP not in around.attributes:
        around = around.parent_op()
    return around is not None


def strides_of(count: SSAValue) -> Iterator[SSAValue]:
    """The divisors of a number of steps: the step of the scf.for behind a time loop."""
    op = count.owner
    if isinstance(op, arith.CeilDivSIOp):
        yield op.rhs
    elif isinstance(op, arith.MaxSIOp | arith.IndexCastOp):
        yield from strides_of(op.operands[0])


def is_trip_count(value: SSAValue) -> bool:
    """Whether the value decides nothing but the number of steps of time loops."""
    if not isinstance(value.type, IndexType | IntegerType):
        return False
    for use in value.uses:
        op = use.operation
        if counts_steps(op, value):
            continue
        if not op.name.startswith("arith.") or not all(map(is_trip_count, op.results)):
            return False
    return True
