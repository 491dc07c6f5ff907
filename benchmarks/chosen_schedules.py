"""
Choose the schedules of the tables' programs for a named target, and compare two choices.

    python benchmarks/chosen_schedules.py --out before.json
    python benchmarks/chosen_schedules.py --out after.json --before before.json
    python benchmarks/chosen_schedules.py --only systems:j2d5pt,choice:wave2

A change of the cost model may turn the choice of a program that nobody had in mind. The programs of
`choice_rows.py`, `real_programs.py`, `systems.py` and `convolutions.py` are compiled up to the
choice, without a GPU; with `--before`, each program whose first loops' schedules differ is printed
with both. Rows are written as they come.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from choice import module_of
from choice_programs import all_questions
from convolutions import filters
from coupled_programs import SYSTEMS
from measure import commit
from real_rows import ORDERS
from real_steps import PROGRAMS
from reports import write_report
from rows import described
from small_domains import DTYPES, domain_of, model_of
from system_compiling import Job, compile_alone, options_for, options_of
from system_rows import system_cases
from xdsl.dialects.builtin import ModuleOp

from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.options import Options
from timetile.runtime.program.compile import kernels_for

ARCH = "h200"
"""The target, unless given."""


@dataclass(frozen=True)
class Choice:
    """A program whose schedules are chosen."""

    key: str
    program: ModuleOp | str
    options: Options


def choices(arch: str) -> Iterator[Choice]:
    """The programs of the tables."""
    for each in all_questions():
        key = f"choice:{each.program}:{each.element}"
        yield Choice(key, module_of(each.program, each.element), options_for(arch))
    for job in {job.key: job for job in (Job(case, False) for case in system_cases())}.values():
        case = job.case
        shape = "x".join(map(str, case.domain))
        rules = f"{case.fp_division}:{case.fp_reassoc}:{case.default_depth}"
        key = f"systems:{case.program}:{case.dtype}:{shape}:{rules}"
        yield Choice(key, case.text(case.domain), options_of(job, arch))
    for name in (*PROGRAMS, *SYSTEMS):
        for order in ORDERS.get(name, ("flags",)):
            for element, kind in DTYPES.items():
                module = model_of(name).module(domain_of(name, element), kind)
                options = replace(options_for(arch), fp_reassoc=order)
                yield Choice(f"real:{name}:{element}:{order}", module, options)
    for each in filters():
        options = replace(options_for(arch), **each.options)
        yield Choice(f"filter:{each.key}", each.text(), options)


def chosen(choice: Choice) -> dict[str, Any]:
    """The schedules of a program's loops, and what the assembler said of candidates."""
    began = time.perf_counter()
    row: dict[str, Any] = {"key": choice.key}
    try:
        kernels = kernels_for(choice.program, choice.options, None, None)
        loops = loops_of(kernels.tiled)
        row["chosen"] = [f"{max(loop.depth_list)}: {loop.decisions}" for loop in loops]
        row["assembled"] = [
            f"{each.depth}: {each.schedule} {each.registers} registers, {each.spilled_words:.1f} "
            f"words, {each.gcells_per_second:.0f} GCells/s"
            for loop in kernels.choice.seen
            for each in loop
        ]
    except Exception as error:
        row["error"] = described(error)
    row["seconds"] = round(time.perf_counter() - began, 1)
    return row


def main() -> None:
    """Choose, write and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", default=ARCH)
    parser.add_argument("--only", default="", help="beginnings of programs' keys, with commas")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--before", type=Path, help="a file of an earlier call")
    options = parser.parse_args()
    compile_alone()
    known: dict[str, dict[str, Any]] = {}
    if options.before is not None:
        known = {row["key"]: row for row in json.loads(options.before.read_text())["rows"]}
    about = {"commit": commit(), "target": options.arch}
    rows: list[dict[str, Any]] = []
    for choice in choices(options.arch):
        if not choice.key.startswith(tuple(options.only.split(","))):
            continue
        row = chosen(choice)
        rows.append(row)
        before = known.get(choice.key, row)
        facts = [each.get("chosen", each.get("error")) for each in (before, row)]
        if options.before is None or facts[0] != facts[1]:
            print(choice.key, *facts[facts[0] == facts[1] :], sep="\n    ", flush=True)
        if options.out is not None:
            write_report(options.out, about, rows)


if __name__ == "__main__":
    main()
