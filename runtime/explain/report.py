"""Facts and tables on a console, section by section."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table


def product(counts: Iterable[int]) -> str:
    """`6 x 32`."""
    return " x ".join(map(str, counts))


@dataclass
class Report:
    """Prints headings, facts and tables to a console."""

    console: Console

    def heading(self, text: str) -> None:
        self.console.print(f"\n[bold]{text}[/]", highlight=False)

    def say(self, label: str, text: str) -> None:
        """One fact on a line of its own."""
        self.console.print(f"  {label:<22} {text}", highlight=False, markup=False, soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(text.replace("[", r"\[") for text in row))
        self.console.print(table)
