"""An explanation as HTML for notebooks: the summaries as tables, the sections folded below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from timetile.runtime.explain.data import Explanation, Fact, Section
from timetile.runtime.explain.summary_facts import summary_facts, sweep_facts, title


def row(cells: Iterable[str], tag: str = "td") -> str:
    """A row of a table."""
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def fact_table(facts: Iterable[Fact]) -> str:
    """Facts as a table of two columns; empty without facts."""
    rows = [row((fact.label, fact.text)) for fact in facts]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def section_html(section: Section) -> str:
    """A section, folded."""
    table = ""
    if section.columns:
        rows = "".join(row(cells) for cells in section.rows)
        table = f"<table>{row(section.columns, 'th')}{rows}</table>"
    inside = fact_table(section.facts) + table + fact_table(section.notes)
    return f"<details><summary>{escape(section.title)}</summary>{inside}</details>"


def parts(explanation: Explanation) -> Iterator[str]:
    """The parts of the page, in order."""
    for loop in explanation.loops:
        yield f"<h4>{escape(title(explanation, loop))}</h4>"
        yield fact_table(summary_facts(loop))
    for sweep in explanation.sweeps:
        yield f"<h4>@{escape(explanation.function)}, {escape(sweep.title)}</h4>"
        yield fact_table(sweep_facts(sweep))
    if explanation.remarks:
        items = "".join(f"<li>{escape(remark)}</li>" for remark in explanation.remarks)
        yield f"<h4>Not done, and why</h4><ul>{items}</ul>"
    yield from map(section_html, explanation.sections)


def as_html(explanation: Explanation) -> str:
    """The whole explanation."""
    return f"<div>{''.join(parts(explanation))}</div>"
