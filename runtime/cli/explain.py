"""`timetile explain`: predicted speed, limits, possible changes; with `--all` everything else."""

from __future__ import annotations

from timetile.runtime.cli.compiled import compile_kernels, compiled
from timetile.runtime.cli.options import Options
from timetile.runtime.cli.terminal import Log, answer_console, say
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.explain.explanation import explanation_of, kernel_names
from timetile.runtime.explain.text import print_explanation


def explain(options: Options, log: Log) -> int:
    """`timetile explain`."""
    if options.steps is not None and not options.all:
        raise UsageError("--steps has no effect without --all; give --all to show launches")
    log.prints_remarks = False
    try:
        program = compiled(options, None)
        compile_kernels([(program.kernels, name) for name in kernel_names(program)])
        found = explanation_of(program, options.steps)
    except Exception:
        # The remarks often tell why nothing can be explained.
        if log.remarks:
            say("Not done, and why")
        for remark in log.remarks:
            say(f"  {remark}")
        raise
    print_explanation(answer_console(), found, full=options.all)
    for text in log.remarks:
        if text not in found.remarks:
            log.show("warning", text)
    return 0
