"""
The C of a bundle makes the launches of the plan, in order: compiled against a driver that records
each call. The plan equals the runtime's launches for equal steps.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import timetile
from support.command_line import run
from timetile.passes.diagnostics import CompileError
from timetile.runtime.bundle.files import write_bundle
from timetile.runtime.bundle.plan import BundleAction

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"

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


def noted(folder: Path, name: str, main: str) -> list[dict[str, Any]]:
    """The driver's calls from a program that uses a bundle."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler is not None, "the tests of bundles need a C compiler"
    stub = HERE / "support" / "driver"
    (folder / "main.c").write_text(main)
    program = folder / "main"
    subprocess.run(
        [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", f"-I{stub}",
         f"-I{folder}", str(folder / "main.c"), str(folder / f"{name}.c"), str(stub / "driver.c"),
         "-o", str(program)],
        check=True,
    )  # fmt: skip
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main_of(name: str, fields: list[str], scalars: list[tuple[str, str]]) -> str:
    """
    A program that runs a bundle on made-up addresses, and checks the release of all resources.
    """
    settings = [f"  a.{field} = {k + 1}ull;" for k, field in enumerate(fields)]
    settings += [f"  a.{scalar} = {value};" for scalar, value in scalars]
    body = "\n".join(settings)
    return f"""
#include "{name}.h"
int stub_held(void);
int main(void) {{
  {name}_program *p;
  {name}_arguments a = {{0}};
{body}
  if ({name}_load(&p, "{{folder}}")) return 1;
  if ({name}_run(p, &a, 0)) return 2;
  {name}_unload(p);
  return stub_held() != 0;
}}
"""


def flat(actions: list[BundleAction]) -> list[BundleAction]:
    """Launches and copies in order, with repetitions."""
    found: list[BundleAction] = []
    for action in actions:
        found += flat(action["actions"]) * action["repeat"] if "repeat" in action else [action]
    return found


@pytest.mark.parametrize("steps", [0, 1, 7, 100])
def test_c_makes_the_launches_of_the_plan(steps: int, tmp_path: Path):
    program = timetile.compile(DRIVEN, executor="planes", depth=4, cache=False)
    write_bundle(program, steps, tmp_path)
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["version"] == 1 and plan["steps"] == steps
    text = main_of("driven", ["a", "b"], [("rate", "0.5")]).replace("{folder}", str(tmp_path))
    calls = noted(tmp_path, "driven", text)
    made = [call for call in calls if "launch" in call or "copy" in call]
    scratch = [call["alloc"] for call in calls if "alloc" in call]
    buffers = [1, 2, *scratch]
    half = int.from_bytes(bytes.fromhex("3fe0000000000000"))
    for call, action in zip(made, flat(plan["actions"]), strict=True):
        if "copy" in action:
            assert call["copy"] == [buffers[k] for k in action["copy"]]
            continue
        assert call["launch"] == action["launch"] and call["how"] == "plain"
        values = [half if "scalar" in o else buffers[o["buffer"]] for o in action["operands"]]
        assert call["values"] == values
    depths = {k.name: k.steps for facts in program.kernels.facts for k in facts}
    assert sum(depths[call["launch"]] for call in made if "launch" in call) == steps


def test_the_source_is_short_and_calls_declared_functions(tmp_path: Path):
    program = timetile.compile(EXAMPLES / "gray_scott.mlir", executor="planes", cache=False)
    write_bundle(program, 1000, tmp_path)
    (source,) = tmp_path.glob("*.c")
    (header,) = tmp_path.glob("*.h")
    assert len((source.read_text() + header.read_text()).splitlines()) < 500
    plan = json.loads((tmp_path / "plan.json").read_text())
    for kernel in plan["kernels"]:
        assert (tmp_path / kernel["file"]).stat().st_size > 0
    used = set(re.findall(r"\b(cu[A-Z]\w+)\(", source.read_text()))
    declared = set(re.findall(r"\b(cu[A-Z]\w+)\(", (HERE / "support/driver/cuda.h").read_text()))
    assert used <= declared


def test_a_bundle_of_a_number_computed_by_the_host_is_refused(tmp_path: Path):
    text = DRIVEN.replace("%rate: f64", "%half: f64").replace(
        "%c0 =", "%rate = arith.addf %half, %half : f64\n  %c0 ="
    )
    program = timetile.compile(text, executor="planes", cache=False)
    with pytest.raises(CompileError, match="the host computes %rate; pass it as an argument"):
        write_bundle(program, 4, tmp_path)


def test_the_command_line_writes_a_folder(tmp_path: Path):
    heat = EXAMPLES / "heat2d.mlir"
    assert run(f"compile {heat} --emit bundle --steps 20 --out {tmp_path / 'heat'}") == 0
    assert {file.suffix for file in (tmp_path / "heat").iterdir()} >= {".json", ".h", ".c"}


def test_a_bundle_needs_a_folder_and_a_number_of_steps(tmp_path: Path, capsys: Any):
    heat = EXAMPLES / "heat2d.mlir"
    assert run(f"compile {heat} --emit bundle --steps 20") == 2
    assert (
        "--emit bundle writes a folder; name the folder with --out FOLDER"
        in capsys.readouterr().err
    )
    assert run(f"compile {heat} --emit bundle --out {tmp_path / 'heat'}") == 2
    assert "known only at run time; give the number with --steps N" in capsys.readouterr().err
