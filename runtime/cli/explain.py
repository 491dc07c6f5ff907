"""`timetile explain`: predicted speed, limits, possible changes; with `--all` everything else."""

from __future__ import annotations

from timetile.runtime.cli.compiled import compile_kernels, compiled, executor_of_readers
from timetile.runtime.cli.options import Options
from timetile.runtime.cli.ranks import parts_of
from timetile.runtime.cli.terminal import Log, answer_console, say
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.explain.data import Explanation, Section
from timetile.runtime.explain.exchange_section import exchange_section
from timetile.runtime.explain.explanation import explanation_of, kernel_names
from timetile.runtime.explain.text import print_explanation, print_section
from timetile.runtime.program.compiled_program import CompiledProgram


def section_of_gpus(
    options: Options, program: CompiledProgram, found: Explanation
) -> Section | None:
    """What exchanges cost on several GPUs, if asked for. Raises UsageError for impossible parts."""
    if options.of_gpus is None:
        if options.parts is not None:
            raise UsageError("--parts has no effect without --gpus; give --gpus, too")
        return None
    try:
        deepest = max(found.loops, key=lambda loop: loop.depth, default=None)
        alone = None if deepest is None else deepest.gcells_per_second
        return exchange_section(program, options.of_gpus, parts_of(options.parts), alone)
    except ValueError as error:
        raise UsageError(str(error)) from error


def explain(options: Options, log: Log) -> int:
    """`timetile explain`."""
    if options.steps is not None and not options.all:
        raise UsageError("--steps has no effect without --all; give --all to show launches")
    log.prints_remarks = False
    try:
        program = compiled(options, executor_of_readers(options))
        compile_kernels([(program.kernels, name) for name in kernel_names(program)])
        found = explanation_of(program, options.steps)
        several = section_of_gpus(options, program, found)
    except Exception:
        # The remarks often tell why nothing can be explained.
        if log.remarks:
            say("Not done, and why")
        for remark in log.remarks:
            say(f"  {remark}")
        raise
    print_explanation(answer_console(), found, full=options.all)
    if several is not None:
        print_section(answer_console(), several)
    for text in log.remarks:
        if text not in found.remarks:
            log.show("warning", text)
    return 0
