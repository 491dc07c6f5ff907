"""Prints an explanation to a console."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from timetile.runtime.explain.data import Explanation, Fact, Section
from timetile.runtime.explain.summary_facts import summary_facts, sweep_facts, title

TEXT_WIDTH = 140
"""Columns of an explanation as text, without a terminal."""

HINT = "timetile explain --all shows the time loop, the kernels, the cost model and the buffers"


def print_heading(console: Console, text: str) -> None:
    """Print a heading."""
    console.print(f"\n[bold]{escape(text)}[/]", highlight=False)


def print_facts(console: Console, facts: Sequence[Fact]) -> None:
    """Print facts one below the other, the texts in one column."""
    width = max((len(fact.label) for fact in facts), default=0)
    label = ""
    for fact in facts:
        shown = "" if fact.label == label else fact.label
        label = fact.label
        line = f"  {shown:<{width}}  {fact.text}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def print_table(console: Console, section: Section) -> None:
    """Print the table of a section."""
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for column in section.columns:
        table.add_column(column, overflow="fold")
    for row in section.rows:
        table.add_row(*map(escape, row))
    console.print(table)


def print_section(console: Console, section: Section) -> None:
    """Print a heading, facts, a table, and notes on its columns."""
    print_heading(console, section.title)
    print_facts(console, section.facts)
    if section.columns:
        print_table(console, section)
    print_facts(console, section.notes)


def print_explanation(console: Console, explanation: Explanation, *, full: bool) -> None:
    """Print the summary of every loop and sweep; with `full`, all sections; then the remarks."""
    for loop in explanation.loops:
        print_heading(console, title(explanation, loop))
        print_facts(console, list(summary_facts(loop)))
    for sweep in explanation.sweeps:
        print_heading(console, f"@{explanation.function}, {sweep.title}")
        print_facts(console, list(sweep_facts(sweep)))
    if full:
        for section in explanation.sections:
            print_section(console, section)
    if explanation.remarks:
        print_heading(console, "Not done, and why")
    for remark in explanation.remarks:
        console.print(f"  {remark}", highlight=False, markup=False, soft_wrap=True)
    if not full:
        console.print(f"\n{HINT}.", highlight=False, markup=False, soft_wrap=True)


def as_text(explanation: Explanation, *, full: bool) -> str:
    """An explanation as plain text."""
    file = StringIO()
    console = Console(file=file, width=TEXT_WIDTH, color_system=None)
    print_explanation(console, explanation, full=full)
    return file.getvalue().strip("\n")
