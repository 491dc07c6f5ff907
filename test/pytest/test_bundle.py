"""
The C of a bundle makes the launches of the runtime, in order, for any number of steps: compiled
against a driver that records each call.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.func import ReturnOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Operation, SSAValue

import timetile
from support.catalogue import entry
from support.command_line import run
from support.programs import program_text
from support.schedules import FLAGS, Schedule, device_plane
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import CopyOp, LaunchOp, ScratchOp
from timetile.dialects.verified import terminator_of
from timetile.lowering.tile_to_gpu.message_buffers import launch_words
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.diagnostics import CompileError
from timetile.runtime.bundle.c_header import C_TYPES
from timetile.runtime.bundle.files import write_bundle
from timetile.runtime.kernels.planning import planned_function

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
DRIVER = HERE / "support" / "driver"

FIELD = "!stencil.field<[-1,65]x[-1,65]xf64>"
TEMP = "!stencil.temp<?x?xf64>"
DRIVEN = f"""
func.func @driven(%a: {FIELD}, %b: {FIELD}, %rate: f64, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%u = %a, %v = %b) -> ({FIELD}, {FIELD}) {{
    %x = stencil.load %u : {FIELD} -> {TEMP}
    %y = stencil.apply(%w = %x : {TEMP}, %k = %rate : f64) -> ({TEMP}) {{
      %l = stencil.access %w[-1, 0] : {TEMP}
      %s = arith.mulf %l, %k : f64
      stencil.return %s : f64
    }}
    stencil.store %y to %v(<[0, 0], [64, 64]>) : {TEMP} to {FIELD}
    scf.yield %v, %u : {FIELD}, {FIELD}
  }}
  return
}}
"""


TWO_LOOPS = DRIVEN.replace("@driven", "@twice").replace(
    "  return\n",
    f"""  %q:2 = scf.for %t = %c0 to %n step %c1 iter_args(%u = %r#0, %v = %r#1)
      -> ({FIELD}, {FIELD}) {{
    %x = stencil.load %u : {FIELD} -> {TEMP}
    %y = stencil.apply(%w = %x : {TEMP}) -> ({TEMP}) {{
      %l = stencil.access %w[0, 1] : {TEMP}
      stencil.return %l : f64
    }}
    stencil.store %y to %v(<[0, 0], [64, 64]>) : {TEMP} to {FIELD}
    scf.yield %v, %u : {FIELD}, {FIELD}
  }}
  return
""",
)


def compiler_of(language: str) -> str:
    """A compiler, or the test is skipped."""
    found = shutil.which({"c": "gcc", "c++": "g++", "fortran": "gfortran"}[language])
    if found is None:
        pytest.skip(f"no compiler of {language} is on the path")
    return found


def built(folder: Path, name: str, main: str) -> Path:
    """A program that uses a bundle, with a driver that notes its calls."""
    (folder / "main.c").write_text(main)
    program = folder / "main"
    subprocess.run(
        [compiler_of("c"), "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
         f"-I{DRIVER}", f"-I{folder}", str(folder / "main.c"), str(folder / f"{name}.c"),
         str(DRIVER / "driver.c"), "-o", str(program), "-lm"],
        check=True,
    )  # fmt: skip
    return program


def noted(program: Path, *words: Path | int | str) -> list[dict[str, Any]]:
    """The driver's calls from a program."""
    done = subprocess.run([program, *map(str, words)], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main_of(name: str, fields: list[str], scalars: list[tuple[str, str]]) -> str:
    """
    A program that runs a bundle on made-up addresses, and checks the release of all resources.
    """
    settings = [f"  a.{field} = {16 * (k + 1)}ull;" for k, field in enumerate(fields)]
    settings += [f"  a.{scalar} = {value};" for scalar, value in scalars]
    order = "\n".join(f'  printf("{{\\"next\\": %llu}}\\n", a.{field});' for field in fields)
    body = "\n".join(settings)
    return f"""
#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>
int stub_held(void);
int main(int count, char **words) {{
  {name}_program *p;
  {name}_arguments a;
{body}
  if (count < 3 || {name}_load(&p, words[1])) return 1;
  if ({name}_advance(p, &a, atoi(words[2]), 0)) return 2;
{order}
  {name}_unload(p);
  return stub_held() != 0;
}}
"""


HALF = int.from_bytes(bytes.fromhex("3fe0000000000000"))


def launched_by_runtime(program: timetile.CompiledProgram, steps: int) -> list[tuple[Any, ...]]:
    """
    The copies and launches of a run by the runtime's own plan. Fields are 16, 32, ..., scratch
    buffers 1024 times their number in the loop, numbers 0.5.
    """
    known: dict[SSAValue, int] = {}
    for k, value in enumerate(program.function.body.block.args):
        known[value] = 16 * (k + 1) if isinstance(value.type, FieldType) else HALF
    found: list[tuple[Any, ...]] = []

    def follow(ops: Iterable[Operation], inner: dict[SSAValue, int]) -> None:
        for op in ops:
            match op:
                case ScratchOp():
                    inner[op.result] = 1024 * (
                        1 + sum(v % 1024 == 0 and v < HALF for v in inner.values())
                    )
                case CopyOp():
                    found.append(("copy", *[inner[value] for value in op.operands]))
                case LaunchOp():
                    values = [inner[value] for value in op.operands]
                    found.append((op.kernel.string_value(), *values))
                case scf.ForOp():
                    for _ in range(integer_constant(op.ub) or 0):
                        follow(op.body.block.ops, inner)
                case _:
                    pass

    for loop in program.function.body.block.ops:
        if isinstance(loop, LoopOp):
            plan = planned_function(loop, program.kernels.facts_of(loop), steps)
            outside = [loop.steps, *loop.buffers, *loop.captures, *loop.scalars]
            inner: dict[SSAValue, int] = {}
            inner.update((b, known[a]) for a, b in zip(outside, plan.body.block.args))
            follow(plan.body.block.ops, inner)
            end = terminator_of(plan.body.block, ReturnOp)
            known |= {a: inner[b] for a, b in zip(loop.res, end.arguments)}
    return found


@pytest.mark.parametrize(
    ("text", "depth"),
    [(DRIVEN, 4), (DRIVEN, 1), (DRIVEN, 3), (TWO_LOOPS, 3), (EXAMPLES / "wave2d.mlir", 3)],
    ids=["even", "single", "odd", "two loops", "three buffers"],
)
def test_c_makes_the_launches_of_the_runtime(text: str | Path, depth: int, tmp_path: Path):
    program = timetile.compile(text, executor="planes", depth=depth, cache=False)
    write_bundle(program, None, tmp_path)
    (source,) = tmp_path.glob("*.c")
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["version"] == 3
    names = [a["name"] for a in plan["arguments"] if a["kind"] == "field"]
    scalars = [(a["name"], "0.5") for a in plan["arguments"] if a["kind"] == "scalar"]
    host = built(tmp_path, source.stem, main_of(source.stem, names, scalars))
    most = max(len(loop["plans"]) for loop in plan["loops"])
    for steps in (0, 1, 2, 5, 7, most - 1, most, most + 1, 100, 1001, 2500):
        calls = noted(host, tmp_path, steps)
        made = [
            ("copy", *call["copy"]) if "copy" in call else (call["launch"], *call["values"])
            for call in calls
            if "copy" in call or "launch" in call
        ]
        assert made == launched_by_runtime(program, steps)
        assert all(call["how"] == "plain" for call in calls if "launch" in call)


def test_c_clears_the_messages_of_blocks_that_wait_before_every_launch(tmp_path: Path):
    """Kernels with waiting blocks take the messages behind the operands, then the tiles."""
    schedule = Schedule("messages", device_plane((3, 2), 2, 2), planes=5, shown=FLAGS)
    text = program_text(entry("heat-3d").make((5, 9, 22)))
    program = timetile.compile(text, executor="planes", passes=schedule.passes(2), cache=False)
    kernel = next(
        kernel
        for fact in program.kernels.facts[0]
        if (kernel := program.kernels.kernel(fact.name)).blocks_per_tile > 1
    )
    write_bundle(program, None, tmp_path)
    (source,) = tmp_path.glob("*.c")
    plan = json.loads((tmp_path / "plan.json").read_text())
    names = [a["name"] for a in plan["arguments"] if a["kind"] == "field"]
    scalars = [(a["name"], "0.5") for a in plan["arguments"] if a["kind"] == "scalar"]
    host = built(tmp_path, source.stem, main_of(source.stem, names, scalars))
    calls = noted(host, tmp_path, 7)
    tiles = kernel.grid // kernel.blocks_per_tile
    size = 8 * launch_words(tiles, kernel.message_words)
    (messages,) = [call["alloc"] for call in calls if call.get("bytes") == size and "alloc" in call]
    launches = [k for k, call in enumerate(calls) if call.get("how") == "cooperative"]
    assert len(launches) > 1
    for k in launches:
        assert calls[k - 1] == {"zero": messages, "bytes": size}
        assert calls[k]["launch"] == kernel.name and calls[k]["grid"] == kernel.grid
        *_, buffer, last = calls[k]["values"]
        # The driver notes eight bytes of the tiles, a number of four.
        assert (buffer, last & 0xFFFFFFFF) == (messages, tiles)


def test_fields_change_places_after_an_odd_number_of_steps(tmp_path: Path):
    program = timetile.compile(DRIVEN, executor="planes", depth=2, cache=False)
    write_bundle(program, None, tmp_path)
    host = built(tmp_path, "driven", main_of("driven", ["a", "b"], [("rate", "0.5")]))
    for steps, order in ((4, [16, 32]), (5, [32, 16]), (101, [32, 16])):
        calls = noted(host, tmp_path, steps)
        assert [call["next"] for call in calls if "next" in call] == order


def test_the_source_is_short_and_calls_declared_functions(tmp_path: Path):
    program = timetile.compile(
        EXAMPLES / "gray_scott.mlir", executor="planes", depth=2, cache=False
    )
    write_bundle(program, 1000, tmp_path)
    (source,) = tmp_path.glob("*.c")
    (header,) = tmp_path.glob("*.h")
    assert len((source.read_text() + header.read_text()).splitlines()) < 600
    plan = json.loads((tmp_path / "plan.json").read_text())
    for kernel in plan["kernels"]:
        assert (tmp_path / kernel["ptx"]).stat().st_size > 0
    used = set(re.findall(r"\b(cu[A-Z]\w+)\(", source.read_text()))
    declared = set(re.findall(r"\b(cu[A-Z]\w+)\(", (HERE / "support/driver/cuda.h").read_text()))
    assert used <= declared


def test_cells_of_every_type_have_a_type_of_their_size_in_c(tmp_path: Path):
    sizes = [
        f'_Static_assert(sizeof({C_TYPES[str(k)]}) == {n}, "");' for k, n in CELL_BYTES.items()
    ]
    (tmp_path / "sizes.c").write_text("\n".join(["#include <stdint.h>", *sizes]))
    subprocess.run([compiler_of("c"), "-fsyntax-only", str(tmp_path / "sizes.c")], check=True)


def test_a_bundle_of_a_number_computed_by_the_host_is_refused(tmp_path: Path):
    text = DRIVEN.replace("%rate: f64", "%half: f64").replace(
        "%c0 =", "%rate = math.exp %half : f64\n  %c0 ="
    )
    program = timetile.compile(text, executor="planes", cache=False)
    with pytest.raises(CompileError, match="the host must run the operation; run the program from"):
        write_bundle(program, 4, tmp_path)


QUOTIENTS = {
    "divf": "%q = arith.divf %k, %h : T",
    "squares": "%s = arith.mulf %h, %h : T\n%q = arith.divf %k, %s : T",
    "fused": "%s = math.fma %h, %h, %k : T\n%q = arith.divf %s, %k : T",
    "root": "%s = math.sqrt %h : T\n%q = arith.negf %s : T",
    "reciprocal root": "%q = math.rsqrt %k : T",
    "constants": "%c = arith.constant 0.1 : T\n%s = arith.addf %h, %c : T\n"
    "%d = arith.subf %s, %k : T\n%a = math.absf %d : T\n%q = arith.divf %c, %a : T",
}


def quotients(element: str) -> str:
    """A program with a loop for each of the quotients, on fields of its own."""
    field = f"!stencil.field<[0,64]x{element}>"
    cells: list[str] = []
    loops: list[str] = []
    for k, body in enumerate(QUOTIENTS.values()):
        cells.append(f"""
func.func private @cell{k}(%u: {element}, %k: {element}, %h: {element}) -> {element} {{
  {body.replace("T", element)}
  %r = arith.mulf %u, %q : {element}
  func.return %r : {element}
}}""")
        loops.append(f"""
  temporal.loop %n (%a = %A{k}, %b = %B{k}) rotate [1, 0] {{
    temporal.update %b = @cell{k}(%a[0]) scalars(%k, %h) in <[0], [64]>
  }} : {field}, {field}""")
    given = ", ".join(f"%A{k}: {field}, %B{k}: {field}" for k in range(len(QUOTIENTS)))
    return f"""{"".join(cells)}
func.func @quotient(%n: index, %k: {element}, %h: {element}, {given}) {{{"".join(loops)}
  func.return
}}"""


@pytest.mark.parametrize("element", ["f64", "f32"])
def test_c_computes_numbers_with_the_bits_of_cells(element: str, tmp_path: Path):
    """Numbers are drawn; parameters of kernels are compared with numbers of the runtime's host."""
    program = timetile.compile(quotients(element), executor="planes", depth=1, cache=False)
    write_bundle(program, None, tmp_path)
    fields = [f"{which}{k}" for k in range(len(QUOTIENTS)) for which in "AB"]
    scalars = [(each, f"strtod(words[{k}], 0)") for k, each in ((3, "k"), (4, "h"))]
    host = built(tmp_path, "quotient", main_of("quotient", fields, scalars))
    random = np.random.default_rng(7)
    kind = np.float64 if element == "f64" else np.float32
    for _ in range(3):
        k, h = (kind(number) for number in random.uniform(0.1, 3, 2))
        calls = noted(host, tmp_path, 1, repr(float(k)), repr(float(h)))
        launches = [call["values"] for call in calls if "launch" in call]
        made = [np.zeros(64, kind) for _ in QUOTIENTS]
        program(1, k, h, *(each for cells in made for each in (np.ones(64, kind), cells)))
        for name, values, cells in zip(QUOTIENTS, launches, made, strict=True):
            (expected,) = set(cells)
            known = {int(v).to_bytes(8, "little")[: kind().itemsize] for v in values}
            assert kind(expected).tobytes() in known, name


def test_the_command_line_writes_a_folder(tmp_path: Path):
    heat = EXAMPLES / "heat2d.mlir"
    assert run(f"compile {heat} --depth 4 --emit bundle --steps 20 --out {tmp_path / 'heat'}") == 0
    assert {file.suffix for file in (tmp_path / "heat").iterdir()} >= {".json", ".h", ".c"}


def test_a_bundle_needs_a_folder(capsys: Any):
    assert run(f"compile {EXAMPLES / 'heat2d.mlir'} --emit bundle --steps 20") == 2
    assert (
        "--emit bundle writes a folder; name the folder with --out FOLDER"
        in capsys.readouterr().err
    )


def test_the_header_has_the_steps_of_the_option(tmp_path: Path):
    program = timetile.compile(DRIVEN, executor="planes", depth=2, cache=False)
    write_bundle(program, None, tmp_path)
    assert "DRIVEN_STEPS" not in (tmp_path / "driven.h").read_text()
    write_bundle(program, 12, tmp_path)
    assert "#define DRIVEN_STEPS 12\n" in (tmp_path / "driven.h").read_text()
    assert "driven_steps = 12\n" in (tmp_path / "driven.f90").read_text()
