"""What a sweep along an axis costs: bytes, the bound by memory, lines, and its kernel."""

from __future__ import annotations

from collections.abc import Iterator

from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import SweepOp
from timetile.dialects.temporal.sweep import PART_PLACES
from timetile.lowering.sweep_frames import MANY_LINES, SweepFrame, sweeps_of
from timetile.passes.targets.target import Target
from timetile.runtime.arithmetic.sweeps import function_of_sweep
from timetile.runtime.explain.data import SweepSummary
from timetile.runtime.explain.figures import bytes_of_cells, flops
from timetile.runtime.explain.names import names
from timetile.runtime.explain.summary_facts import plural
from timetile.runtime.kernels.assembler import assemble, assembles
from timetile.runtime.kernels.sweeping import sweep_text
from timetile.runtime.program.compiled_program import CompiledProgram


def sweep_summaries(program: CompiledProgram) -> Iterator[SweepSummary]:
    """The sweeps along an axis of a program's function, in order. Kernels are assembled."""
    for number, op in enumerate(sweeps_of(program.function)):
        yield sweep_summary(op, number, program.kernels.options.target)


def sweep_summary(op: SweepOp, number: int, target: Target) -> SweepSummary:
    """The summary of one sweep."""
    frame = SweepFrame.of(op)
    read = [op.sources[tap.operand] for tap in op.tap_list if not op.is_result(tap)]
    read = list(dict.fromkeys(read))
    made = None
    if assembles(target.name):
        made = assemble(sweep_text(frame, target.name), target.name, frame.name)
    moved = bytes_of_cells([*read, *op.targets])
    return SweepSummary(
        title=f"sweep {number} along axis {op.axis.data}",
        axis=op.axis.data,
        direction=str(op.direction.data),
        cells=tuple(frame.sizes),
        element=", ".join(dict.fromkeys(str(element_type(field)) for field in op.targets)),
        kept=", ".join(f"{names([f])} ({plural(n, 'place')})" for f, n in frame.carried.items()),
        bytes_read=bytes_of_cells(read),
        bytes_written=bytes_of_cells(op.targets),
        flops=flops(function_of_sweep(op)),
        target=target.title,
        bound=target.part.copy_tb_per_s * 1e3 / moved,
        kernel=frame.name,
        lines=frame.lines,
        blocks=frame.grid,
        threads=frame.threads,
        places_of_turn=frame.places_of_turn,
        ahead=frame.ahead,
        beside=frame.beside,
        ring=frame.ring,
        parts=-(-len(op.places) // PART_PLACES) if frame.is_parted else 0,
        group=0 if frame.staging is None else frame.staging.lines,
        slots=frame.slots,
        registers=None if made is None else made.registers,
        spill_bytes=None if made is None else made.spill_bytes,
        advice=tuple(advice_on_lines(frame)),
    )


def advice_on_lines(frame: SweepFrame) -> Iterator[str]:
    """Possible changes by the user."""
    op = frame.op
    if op.rank > 1 and op.axis.data == op.rank - 1 and frame.staging is None:
        yield (
            "the order of the axes: a sweep along the last axis reads a row a thread, and lines of "
            "memory are read by parts; put the axis of the sweep first"
        )
    if frame.lines < MANY_LINES and not frame.is_parted:
        yield (
            f"more lines: {frame.lines} are too few threads to hide the time of memory; a batch of "
            "domains, or a domain wider across the axis, takes hardly longer"
        )
