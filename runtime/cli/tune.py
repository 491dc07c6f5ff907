"""`timetile tune`: the fastest schedules, measured on the GPU; `--show` lists those kept."""

from __future__ import annotations

from rich import box
from rich.table import Table

from timetile.runtime.cache.store import Cache
from timetile.runtime.cli.compiled import compiled
from timetile.runtime.cli.inputs import Arguments, label, parse_number, read_arrays
from timetile.runtime.cli.options import NO_PROGRAM, Options
from timetile.runtime.cli.terminal import Log, answer_console, progress, say
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.kernels.measured import Measured, MeasuredRow, records, schedules_text
from timetile.runtime.kernels.tuning import LIMIT_SECONDS
from timetile.runtime.machine.driver import Unavailable, driver
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.tuned_program import tuned

SEED = 0
"""The seed of fields without values."""

NUMBER = "0.1"
"""The value of scalars without a value: explicit steps are mostly stable with a small number."""


def arguments_of(program: CompiledProgram, options: Options) -> list[object]:
    """A value for each argument: given, or at random in fields, and `NUMBER` as a scalar."""
    arguments = Arguments(program)
    arguments.check_size()
    if options.args is not None:
        arguments.add_arrays(read_arrays(options.args), str(options.args))
    for setting in options.set:
        arguments.add_setting(setting)
    arguments.add_steps(1)
    arguments.add_random(SEED, ())
    for parameter in program.parameters:
        if parameter.bounds is None and parameter.is_read:
            if parameter.position in arguments.values:
                continue
            say(f"{label(parameter)} is {NUMBER}; --set {parameter.name}=VALUE gives another value")
            arguments.give(parameter, parse_number(NUMBER, parameter))
    return arguments.all()


def speed_text(row: MeasuredRow) -> str:
    """A measured speed, or that a schedule was not taken."""
    return f"{row.gcells_per_second:.4g}" if row.gcells_per_second else "other bits, not taken"


def print_record(record: Measured) -> None:
    """Print the measured schedules of a program."""
    say(f"{record.program}, on {record.device}")
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for column in ("GCells/s measured", "schedule"):
        table.add_column(column, overflow="fold")
    for row in record.rows:
        table.add_row(speed_text(row), schedules_text(row.chosen))
    answer_console().print(table, markup=False)
    best = record.best.gcells_per_second
    say(
        f"kept: {best:.4g} GCells/s, {best / record.default:.2f} times the model's choice "
        f"({record.default:.4g})"
    )


def show() -> int:
    """List what is kept."""
    cache = Cache.default()
    kept = sorted(records(cache), key=lambda record: (record.program, record.device))
    for record in kept:
        best, where = record.best, " in a run" if record.in_run else ""
        say(
            f"{record.program}, on {record.device}: {best.gcells_per_second:.4g} GCells/s "
            f"measured{where}, {record.default:.4g} by the model's choice; "
            f"{schedules_text(best.chosen)}"
        )
    if not kept:
        say(f"nothing was measured yet in {cache.directory}; timetile tune PROGRAM.mlir measures")
    return 0


def tune(options: Options, log: Log) -> int:
    """`timetile tune`."""
    if options.show:
        if options.program != NO_PROGRAM:
            raise UsageError("--show lists what is kept for all programs; leave out the program")
        return show()
    if options.program == NO_PROGRAM:
        raise UsageError("tune needs a program, or --show for a list of what is kept")
    found = driver()
    if isinstance(found, Unavailable):
        raise UsageError(
            f"schedules are measured on a GPU, and no GPU can be used: {found.reason}; without a "
            "measurement the model and the assembler choose"
        )
    program = compiled(options, "gpu")
    values = arguments_of(program, options)
    limit = float(options.seconds or LIMIT_SECONDS)
    with progress("measuring schedules") as advance:
        record = tuned(program, values, limit, advance)
    print_record(record)
    return 0
