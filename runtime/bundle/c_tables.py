"""The static tables of a bundle's C: kernels, sizes, and the launches of every number of steps."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan

from timetile.lowering.ptx.symbols import symbol
from timetile.runtime.bundle.c_header import C_TYPES, named_arguments
from timetile.runtime.bundle.c_names import c_word
from timetile.runtime.bundle.host_numbers import NumberSource, computed_lines
from timetile.runtime.bundle.loop_plans import LoopEntry
from timetile.runtime.bundle.plan import BundlePlan, KernelEntry

KernelNumber = tuple[str, str]
"""The C type of a kernel's parameter, and the expression of its value."""


@dataclass
class Tables:
    """
    Rows of all loops. A list of a row is an offset and a count in the table of integers
    `integers`.
    """

    integers: list[int] = field(default_factory=list[int])
    launches: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    plans: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    loops: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    numbers: dict[KernelNumber, int] = field(default_factory=dict[KernelNumber, int])

    def listed(self, values: Iterable[int]) -> tuple[int, int]:
        """Append a list of integers: its offset and its count."""
        start = len(self.integers)
        self.integers += values
        return start, len(self.integers) - start


class TableMaker:
    """Makes the tables of a plan."""

    def __init__(self, plan: BundlePlan):
        self.plan, self.made = plan, Tables()
        self.kernels = {kernel.name: k for k, kernel in enumerate(plan.kernels)}
        named = {id(argument): member for argument, member in named_arguments(plan, "scalar")}
        self.members = {k: named.get(id(each), "") for k, each in enumerate(plan.arguments)}

    def tables(self) -> Tables:
        """The tables."""
        for loop in self.plan.loops:
            self.add(loop)
        return self.made

    def add(self, loop: LoopEntry) -> None:
        """Add the rows of a loop."""
        made = self.made
        launches, plans = len(made.launches), len(made.plans)
        for row in loop.launches:
            kernel = self.plan.kernels[self.kernels[row.kernel]]
            operands = [
                index if kind == "buffer" else -1 - self.number(loop, index, parameter)
                for (kind, index), parameter in zip(row.operands, kernel.parameters, strict=True)
            ]
            made.launches.append((self.kernels[row.kernel], *made.listed(operands)))
        for row in loop.plans:
            copies = made.listed(side for pair in row.copies for side in pair)
            order = made.listed(launches + at for at in row.launches)
            left, _ = made.listed(row.left)
            made.plans.append(
                (*copies, *order, row.first, row.length, row.repeats, row.turn, row.scratch, left)
            )
        buffers, captures = made.listed(loop.buffers), made.listed(loop.captures)
        fixed = 0 if loop.fixed is None else 1
        made.loops.append(
            (fixed, plans, len(loop.plans), loop.period, *buffers, *captures, loop.results,
             len(loop.scratch))
        )  # fmt: skip

    def number(self, loop: LoopEntry, index: int, parameter: str) -> int:
        """The position of a number among all numbers of kernels."""
        text = self.source_text(loop.numbers[index], C_TYPES[parameter])
        return self.made.numbers.setdefault((C_TYPES[parameter], text), len(self.made.numbers))

    def source_text(self, source: NumberSource, c_type: str) -> str:
        """The C of a number of the host."""
        if "scalar" in source:
            return f"arguments->{self.members[int(source['scalar'])]}"
        if "computed" in source:
            return f"computed{source['computed']}"
        return c_number(source["constant"], c_type)

    def computed(self) -> list[str]:
        """The C of the numbers that the host computes; constants have the type of the result."""

        def typed(source: NumberSource, c_type: str) -> str:
            text = self.source_text(source, c_type)
            return f"({c_type}){text}" if "constant" in source else text

        return computed_lines(self.plan.computed, typed)


def c_number(value: float | int, c_type: str) -> str:
    """A number as C text that is read back exactly; C++ before 2017 lacks hexadecimal floats."""
    if isinstance(value, float):
        if isfinite(value):
            return repr(value)
        return "NAN" if isnan(value) else f"{'-' if value < 0 else ''}INFINITY"
    if c_type == C_TYPES["i1"]:
        return str(value & 1)
    return "INT64_MIN" if value == -(2**63) else f"{value}LL"


def scratch_sizes(plan: BundlePlan) -> list[int]:
    """The bytes of scratch buffers: of the program, then shared by the loops."""
    most = max((len(loop.scratch) for loop in plan.loops), default=0)
    shared = [
        max(loop.scratch[k] for loop in plan.loops if k < len(loop.scratch)) for k in range(most)
    ]
    return [*plan.scratch, *shared]


def kernel_row(kernel: KernelEntry) -> str:
    """A kernel's row in the table."""
    file = kernel.ptx.removesuffix(".ptx")
    has_cubin = int(kernel.cubin is not None)
    return (
        f'  {{"{symbol(kernel.name)}", "{file}", {has_cubin}, {kernel.grid}, {kernel.block}, '
        f"{kernel.shared_bytes}, {kernel.blocks_per_tile}, {kernel.message_words}}},"
    )


def rows_text(rows: Sequence[tuple[int, ...]], width: int) -> str:
    """Rows of integers, and a row of zeros behind."""
    texts = [f"{{{', '.join(map(str, row))}}}," for row in [*rows, (0,) * width]]
    return wrapped(" ".join(text.replace(" ", "") for text in texts))


def list_text(values: Sequence[int]) -> str:
    """Integers, and a zero behind."""
    return wrapped(", ".join(map(str, [*values, 0])))


def wrapped(words: str) -> str:
    """Words in lines of a width that reads well."""
    return textwrap.indent(
        textwrap.fill(words, 94, break_long_words=False, break_on_hyphens=False), "  "
    )


def sizes_text(plan: BundlePlan, tables: Tables) -> str:
    """The sizes of tables, and the facts of kernels."""
    kernels = "\n".join(map(kernel_row, plan.kernels))
    values = len(plan.fields) + len(plan.scratch) + sum(len(loop.buffers) for loop in plan.loops)
    places = max(
        (len(loop.buffers) + len(loop.scratch) + len(loop.captures) for loop in plan.loops),
        default=0,
    )
    operands = max((row[2] for row in tables.launches), default=0)
    return f"""\
enum {{
  KERNELS = {len(plan.kernels)}, FIELDS = {len(plan.fields)}, SCRATCH = {len(scratch_sizes(plan))},
  OWN_SCRATCH = {len(plan.scratch)}, VALUES = {values}, LOOPS = {len(plan.loops)},
  PLACES = {places}, NUMBERS = {len(tables.numbers)}, OPERANDS = {operands},
  LATEST = {len(plan.latest)}, NEXT = {len(plan.next)}
}};

typedef struct {{
  const char *name, *file;
  int has_cubin;
  unsigned grid, block, shared_bytes, blocks_per_tile, message_words;
}} kernel_facts;

static const kernel_facts facts[KERNELS + 1] = {{
{kernels}
  {{0, 0, 0, 0, 0, 0, 0, 0}}
}};
"""


def buffers_text(plan: BundlePlan) -> str:
    """The names and sizes of buffers."""
    names = ", ".join(f'"{member}"' for _, member in named_arguments(plan, "field"))
    return f"""\
/* Buffers are the fields, then scratch buffers: of the program, and of its loops. */
static const char *const field_names[FIELDS + 1] = {{{names}{", " if names else ""}0}};
static const size_t field_bytes[FIELDS + 1] = {{
{list_text([argument.bytes for argument in plan.fields])}
}};
static const size_t scratch_bytes[SCRATCH + 1] = {{
{list_text(scratch_sizes(plan))}
}};
"""


def plans_text(tables: Tables) -> str:
    """The launches and plans of loops."""
    return f"""\
/* Lists of numbers, which the rows below give by offset and count. */
static const int integers[] = {{
{list_text(tables.integers)}
}};

/* Operands of a launch: a buffer of the loop, or number k as -1 - k. */
typedef struct {{ int kernel, operands, count; }} launch_row;
static const launch_row launch_rows[] = {{
{rows_text(tables.launches, 3)}
}};

/* The plan of n steps is row n of a loop: copies of pairs of buffers, then launches, of which
   `length` from `first` on are made `repeats` times and advance `turn` steps; results are left in
   buffers of the loop. */
typedef struct {{
  int copies, copied, order, launches, first, length, repeats, turn, scratch, left;
}} plan_row;
static const plan_row plan_rows[] = {{
{rows_text(tables.plans, 10)}
}};

/* Values are the fields, the program's scratch buffers, then the results of loops. A number of
   steps beyond the plans has the plan of whole periods less, with more repeats. */
typedef struct {{
  int is_fixed, plans, count, period, buffers, carried, captures, captured, results, scratch;
}} loop_row;
static const loop_row loop_rows[] = {{
{rows_text(tables.loops, 10)}
}};
"""


def results_text(plan: BundlePlan) -> str:
    """What a run leaves where, and the state of a loaded program."""
    return f"""\
static const int latest_values[LATEST + 1] = {{
{list_text(plan.latest)}
}};

/* A following call has a value in the place of a field. */
static const int next_values[2 * NEXT + 1] = {{
{list_text([side for pair in plan.next for side in pair])}
}};

struct {c_word(plan.name)}_program {{
  CUmodule modules[KERNELS + 1];
  CUfunction functions[KERNELS + 1];
  CUdeviceptr scratch[SCRATCH + 1], messages[KERNELS + 1], copies[FIELDS + 1];
  /* Tiles that the device holds at once, of kernels whose blocks wait. */
  unsigned tiles[KERNELS + 1];
  int latest[LATEST + 1], next[FIELDS + 1];
  char message[5120];
}};
"""


def tables_text(plan: BundlePlan, tables: Tables) -> str:
    """The tables as C."""
    parts = (sizes_text(plan, tables), buffers_text(plan), plans_text(tables), results_text(plan))
    return "\n".join(parts)
