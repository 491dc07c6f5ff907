"""`timetile explain`: what was recognised, the kernels, and what was not done."""

from __future__ import annotations

from timetile.runtime.cli.compiled import compile_kernels, compiled, kernel_names
from timetile.runtime.cli.options import Options
from timetile.runtime.cli.terminal import Log, answer_console, say
from timetile.runtime.explain.explanation import Explanation


def explain(options: Options, log: Log) -> int:
    """`timetile explain`."""
    console = answer_console()
    log.prints_remarks = False
    try:
        program = compiled(options, None)
        compile_kernels(program, kernel_names(program))
        Explanation(console, program, options.steps).show()
    finally:
        if log.remarks:
            console.print("\n[bold]Not done, and why[/]")
        for remark in log.remarks:
            say(f"  {remark}")
    if not log.remarks:
        say("\nEverything was done: there are no remarks.")
    return 0
