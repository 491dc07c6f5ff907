"""The programs of a table's rows: text, compilation, and a row's words on the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from settings import wait_for_choices
from stencils import STENCILS, gradient, program, wave
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.str_enum import StrEnum

import timetile
from timetile.dialects.tile import ScheduleAttr
from timetile.dialects.tile.schedule import Schedule
from timetile.lowering.pipelines import tile_passes
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Halos, Options, run_passes
from timetile.runtime.loading.modules import load, make_context
from timetile.runtime.program.compiled_program import CompiledProgram

wait_for_choices()


def read_schedule(text: str) -> ScheduleAttr:
    """The schedule of a row of results: `#tile.schedule<...>`."""
    attribute = Parser(make_context(), text).parse_attribute()
    assert isinstance(attribute, ScheduleAttr)
    return attribute


def source(name: str, domain: tuple[int, ...], element: str) -> tuple[str, int, int]:
    """A benchmark's program, the halo of its fields, and the number of fields."""
    if name.startswith("wave"):
        radius = int(name.removeprefix("wave"))
        return wave(domain, radius, element), radius, 4
    if name.startswith("gradient2d"):
        return gradient(domain, element, fast=name.endswith("-fast")), 1, 2
    stencil = STENCILS[name].scaled()
    return program(stencil, domain, element), stencil.radius, 2


def parsed(text: str, usual: Any) -> Any:
    """The value of a part of a schedule whose default value is `usual`."""
    match usual:
        case tuple():
            return tuple(map(int, text.split(",")))
        case StrEnum():
            return type(usual)(text)
        case bool():
            return text == "true"
        case _:
            return int(text)


def parse_row(text: str) -> tuple[str, str, tuple[int, ...], int | None, dict[str, Any]]:
    """
    `j2d5pt:f64:8352x8352[:depth[:cells=6,2;ahead=1]]`; depth 0 leaves the choice to the compiler.
    """
    name, element, domain, *rest = text.split(":")
    changes: dict[str, Any] = {}
    for entry in rest[1].split(";") if len(rest) > 1 else ():
        key, value = entry.split("=")
        changes[key] = parsed(value, getattr(Schedule(), key))
    depth = int(rest[0]) if rest and int(rest[0]) else None
    return name, element, tuple(map(int, domain.split("x"))), depth, changes


@dataclass(frozen=True)
class Terms:
    """
    Options of compilation for the rows of a table: the fields' halos, and the rounding of
    quotients.
    """

    halos: Halos = "common"
    fp_division: FpDivision = "exact"


def scheduled(
    text: str, depth: int | None, changes: dict[str, Any], terms: Terms = Terms()
) -> ModuleOp:
    """The program at temporal level, with entries of the chosen schedule replaced."""
    module = raise_program(load(text), Options(halos=terms.halos, fp_division=terms.fp_division))
    if changes:
        run_passes((*tile_passes(depth)[:2],), module)
        for loop in loops_of(module):
            loop.schedule = ScheduleAttr(replace(loop.decisions, **changes))
    return module


def fused_program(
    text: str, depth: int | None, changes: dict[str, Any], terms: Terms = Terms()
) -> CompiledProgram:
    """The program of a row, for fields with halos known to be equal or different."""
    module = scheduled(text, depth, changes, terms)
    return timetile.compile(module, executor="gpu", depth=depth, halos=terms.halos)


def public_program(text: str, depth: int | None, terms: Terms) -> CompiledProgram:
    """The program compiled by a user without words on halos."""
    return timetile.compile(text, executor="gpu", depth=depth, fp_division=terms.fp_division)


def unfused_program(text: str, terms: Terms = Terms()) -> CompiledProgram:
    """The program for comparison: kernels of one step."""
    return public_program(text, 1, terms)


def assemble(compiled: CompiledProgram) -> None:
    """Put the kernels of a program into the cache."""
    for known in compiled.kernels.facts[0]:
        compiled.kernels.kernel(known.name)


def assemble_row(row: str, terms: Terms = Terms()) -> str | None:
    """Put the kernels of a row into the cache. Returns an error, or None."""
    try:
        name, element, domain, depth, changes = parse_row(row)
        text, _, _ = source(name, domain, element)
        assemble(fused_program(text, depth, changes, terms))
        # The public interface's plan before a comparison of halos.
        _ = public_program(text, depth, terms).kernels.facts
        assemble(unfused_program(text, terms))
    except Exception as error:
        return described(error)
    return None


def assemble_rows(rows: Sequence[str], terms: Terms = Terms()) -> list[str | None]:
    """Put the kernels of all rows into the cache, on all cores, while no GPU waits for kernels."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(assemble_row, rows, [terms] * len(rows)))


def described(error: Exception) -> str:
    """An error in a row's words: the other rows are still worth the time."""
    return f"{type(error).__name__}: {error}"
