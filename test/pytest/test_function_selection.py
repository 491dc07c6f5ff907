"""The named function is compiled, run and explained, and no other function."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.passes import PassPipeline

import timetile
from support.command_line import error_of, outputs, run
from timetile.dialects.tile import KernelOp
from timetile.lowering.pipelines import temporal_passes, tile_passes
from timetile.passes.diagnostics import CompileError
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.loading.modules import load_text
from timetile.runtime.loading.selection import keep_only

pytestmark = pytest.mark.usefixtures("cache_of_file")

FIELD = "!stencil.field<[0,64]xf64>"
TEMP = "!stencil.temp<?xf64>"


def loop(name: str, factor: float, visibility: str = "") -> str:
    """
    A function with a time loop that writes the first field times a factor to the second field.
    """
    return f"""
func.func {visibility} @{name}(%a: {FIELD}, %b: {FIELD}, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {{
    %x = stencil.load %a : {FIELD} -> {TEMP}
    %v = stencil.apply(%p = %x : {TEMP}) -> ({TEMP}) {{
      %l = stencil.access %p[1] : {TEMP}
      %f = arith.constant {factor} : f64
      %m = arith.mulf %l, %f : f64
      stencil.return %m : f64
    }}
    stencil.store %v to %b(<[0], [63]>) : {TEMP} to {FIELD}
  }}
  func.return
}}
"""


TWO = loop("twice", 2.0) + loop("thrice", 3.0)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return tmp_path / "program.mlir"


@pytest.mark.parametrize(("name", "factor"), [("twice", 2.0), ("thrice", 3.0)])
def test_every_command_takes_the_named_function(
    name: str, factor: float, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    program.write_text(TWO)
    other = {"twice": "thrice", "thrice": "twice"}[name]
    for level in ("temporal", "tile", "gpu", "hardware", "ptx"):
        assert run(f"compile {program} --function {name} --emit {level}") == 0
        said = capsys.readouterr().out
        assert name in said and other not in said
    assert run(f"explain {program} --function {name}") == 0
    said = capsys.readouterr().out
    assert f"@{name}" in said and other not in said
    out = tmp_path / "out.npz"
    assert run(f"run {program} --function {name} --set a=1 --set b=0 --steps 1 --out {out}") == 0
    assert np.all(outputs(out)["arg1"][:63] == factor)


def test_the_cache_keeps_functions_of_one_text_apart(program: Path):
    program.write_text(TWO)
    for factor, name in ((2.0, "twice"), (3.0, "thrice"), (2.0, "twice")):
        a, b = np.ones(64), np.zeros(64)
        timetile.compile(program, function=name, executor="cpu")(a, b, 1)
        assert np.all(b[:63] == factor)


@pytest.mark.parametrize("command", ["compile {0} --emit tile", "explain {0}"])
def test_a_private_function_is_compiled_where_it_is_named(
    command: str, program: Path, capsys: pytest.CaptureFixture[str]
):
    program.write_text(loop("hidden", 2.0, "private"))
    line = command.format(program)
    assert re.sub(r"\S*program.mlir:\d+", "FILE", error_of(line, capsys)) == (
        "builtin.module: the module must hold one public function, and holds @hidden (private); "
        "name one with --function (function= in Python)"
    )
    assert run(f"{line} --function hidden") == 0


def test_a_function_beside_the_time_loops_is_not_taken_for_them(
    program: Path, capsys: pytest.CaptureFixture[str]
):
    """A function without a loop is refused by name, even if another function has a loop."""
    program.write_text(loop("looped", 2.0) + "func.func @other() { func.return }")
    assert error_of(f"compile {program} --function other", capsys).startswith(
        "@other stores no field"
    )


def test_kernels_take_no_name_of_a_function():
    """A pipeline makes the kernels of all functions, under names that no function has."""
    module = load_text("".join(loop(name, 2.0) for name in ("heat", "heat_step")))
    PassPipeline((*temporal_passes(), *tile_passes(depth=1))).apply(Context(), module)
    module.verify()
    kernels = [op.sym_name.data for op in module.ops if isinstance(op, KernelOp)]
    assert kernels == ["heat_step_1", "heat_step_step"]
    assert [loop.kernel_names for loop in loops_of(module)] == [(name,) for name in kernels]


def test_functions_called_by_the_entry_stay():
    module = load_text(
        """
        func.func private @inner(%x: f64) -> f64 { func.return %x : f64 }
        func.func private @middle(%x: f64) -> f64 {
          %y = func.call @inner(%x) : (f64) -> f64
          func.return %y : f64
        }
        func.func private @unused(%x: f64) -> f64 { func.return %x : f64 }
        func.func @entry(%x: f64) -> f64 {
          %y = func.call @middle(%x) : (f64) -> f64
          func.return %y : f64
        }
        """
    )
    keep_only(module, None)
    names = re.findall(r"func\.func .*?@(\w+)", str(module))
    assert names == ["inner", "middle", "entry"]
    module.verify()


def test_a_module_without_functions_is_refused():
    with pytest.raises(CompileError, match="holds no function with a body; write one"):
        timetile.compile("func.func private @f()", executor="cpu", cache=False)


def test_a_public_function_that_a_cell_calls_is_not_taken_for_the_program():
    """
    Frontends leave functions called by cells public; of two functions without a caller, the user
    names one.
    """
    helper = """
      func.func @half(%x: f64) -> f64 {
        %h = arith.constant 0.5 : f64
        %y = arith.mulf %x, %h : f64
        func.return %y : f64
      }
      func.func @twice(%x: f64) -> f64 {
        %y = func.call @half(%x) : (f64) -> f64
        %z = arith.addf %y, %x : f64
        func.return %z : f64
      }
      func.func @entry(%x: f64) -> f64 {
        %y = func.call @twice(%x) : (f64) -> f64
        func.return %y : f64
      }
    """
    module = load_text(helper)
    assert keep_only(module, None).sym_name.data == "entry"
    private = re.findall(r"func\.func private @(\w+)", str(module))
    assert private == ["half", "twice"]
    with pytest.raises(CompileError, match="holds @half, @twice, @entry, @looped; name one"):
        keep_only(load_text(helper + loop("looped", 2.0)), None)
