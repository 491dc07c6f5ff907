"""Programs in older spellings stay the programs of their day, with each operation on its line."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import timetile
from timetile.passes.diagnostics import CompileError
from timetile.runtime.loading.modules import load_text
from timetile.runtime.program.compiled_program import Executor

Array = NDArray[np.float64]

EARTH = """
module {
  // func @not_this: a comment
  func @columns(%in: !stencil.field<?x?x?xf64>, %out: !stencil.field<?x?x?xf64>,
      %w: !stencil.field<0x?x0xf64>,
      %s : f64) attributes {stencil.program} {
    %0 = stencil.cast %in([-1, -1, 0] : [7, 6, 4])
      : (!stencil.field<?x?x?xf64>) -> !stencil.field<8x7x4xf64>
    %1 = stencil.cast %out ([-1, -1, 0]:[7, 6, 4])
      : (!stencil.field<?x?x?xf64>) -> !stencil.field<8x7x4xf64>
    %2 = stencil.cast %w([-1, -1, 0] : [7, 6, 4])
      : (!stencil.field<0x?x0xf64>) -> !stencil.field<0x7x0xf64>
    %3 = stencil.load %0([-1, -1, 0] : [7, 6, 4])
      : (!stencil.field<8x7x4xf64>) -> !stencil.temp<8x7x4xf64>
    %4 = stencil.load %2 : (!stencil.field<0x7x0xf64>) -> !stencil.temp<0x?x0xf64>
    %5:2 = stencil.apply (%a = %3 : !stencil.temp<8x7x4xf64>, %b = %4 : !stencil.temp<0x?x0xf64>,
        %c = %s : f64) -> (!stencil.temp<?x?x?xf64>, !stencil.temp<?x?x?xf64>) {
      %zero = constant 0.000000e+00 : f64
      %two = constant 2 : index
      %i = stencil.index 0 [0, 0, 0] : index
      %six = constant 6 : index
      %10 = stencil.access %a [1, 0, 0] : (!stencil.temp<8x7x4xf64>) -> f64
      %11 = stencil.access %a[-1, 0, 0] : (!stencil.temp<8x7x4xf64>) -> f64
      %12 = stencil.access %b [0, 1, 0] : (!stencil.temp<0x?x0xf64>) -> f64
      %13 = subf %10, %11 : f64
      %14 = mulf %13, %12 : f64
      %15 = cmpf "olt", %14, %zero : f64
      %16 = negf %14 : f64
      %17 = select %15, %16, %c : f64
      %18 = cmpi "slt", %i, %two : index
      %19 = scf.if %18 -> (f64) {
        %20 = addf %17, %10 : f64
        scf.yield %20 : f64
      } else {
        %20 = divf %17, %c : f64
        scf.yield %20 : f64
      }
      %21 = stencil.store_result %19 : (f64) -> !stencil.result<f64>
      %22 = stencil.store_result %13 : (f64) -> (!stencil.result<f64>)
      stencil.return %21, %22 : !stencil.result<f64>, !stencil.result<f64>
    } to ([0, 0, 0] : [6, 5, 4])
    %6 = stencil.buffer %5#0([0, 0, 0] : [6, 5, 4])
      : (!stencil.temp<?x?x?xf64>) -> !stencil.temp<6x5x4xf64>
    %7, %8 = stencil.combine 0 at 3 lower = (%6 : !stencil.temp<6x5x4xf64>)
      upper = (%5#1 : !stencil.temp<?x?x?xf64>)
      lowerext = (%6 : !stencil.temp<6x5x4xf64>) ([0, 0, 0] : [6, 5, 4])
      : !stencil.temp<?x?x?xf64>, !stencil.temp<?x?x?xf64>
    stencil.store %7 to %1([0, 0, 0] : [6, 5, 4])
      : !stencil.temp<?x?x?xf64> to !stencil.field<8x7x4xf64>
    return
  }
}
"""


def columns(a: Array, out: Array, w: Array, s: float) -> None:
    """The program with NumPy."""
    for i in range(6):
        for j in range(5):
            for k in range(4):
                right, left = a[i + 2, j + 1, k], a[i, j + 1, k]
                product = (right - left) * w[j + 2]
                chosen = -product if product < 0 else s
                low = chosen + right if i < 2 else chosen / s
                out[i + 1, j + 1, k] = low if i < 3 else right - left


@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes"])
def test_a_program_of_the_open_earth_compiler_runs(executor: Executor):
    program = timetile.compile(EARTH, executor=executor, fp_contract="off", cache=False)
    rng = np.random.default_rng(5)
    a, w = rng.random((8, 7, 4)), rng.random(7)
    found, right = np.zeros((8, 7, 4)), np.zeros((8, 7, 4))
    program(a.copy(), found, w.copy(), 0.75)
    columns(a, right, w, 0.75)
    assert found.tobytes() == right.tobytes()


OLD = """
func.func @step(%a: !stencil.field<[-1,9]x[-1,9]xf64>, %b: !stencil.field<[-1,9]x[-1,9]xf64>) {
  %u = stencil.load %a : !stencil.field<[-1,9]x[-1,9]xf64> -> !stencil.temp<?x?xf64>
  %v = BODY
  STORE
  func.return
}
"""
NEW_BODY = """stencil.apply(%x = %u : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %i = stencil.index 1 <[0, 0]>
    %l = stencil.access %x[-1, 0] : !stencil.temp<?x?xf64>
    stencil.return %l : f64
  }"""
GENERIC_BODY = """"stencil.apply"(%u) ({
  ^0(%x : !stencil.temp<?x?xf64>):
    %i = "stencil.index"() {"dim" = 1 : i64, "offset" = #stencil.index<0, 0>} : () -> index
    %l = "stencil.access"(%x) {"offset" = #stencil.index[-1, 0]} : (!stencil.temp<?x?xf64>) -> f64
    "stencil.return"(%l) : (f64) -> ()
  }) : (!stencil.temp<?x?xf64>) -> !stencil.temp<?x?xf64>"""
TYPES = "!stencil.temp<?x?xf64> to !stencil.field<[-1,9]x[-1,9]xf64>"
GENERIC_TYPES = "(!stencil.temp<?x?xf64>, !stencil.field<[-1,9]x[-1,9]xf64>) -> ()"
STORES = [
    f"stencil.store %v to %b ([0, 0] : [8, 8]) : {TYPES}",
    f"stencil.store %v to %b<[0, 0], [8, 8]> : {TYPES}",
    f'"stencil.store"(%v, %b) {{"lb" = #stencil.index<0, 0>, "ub" = #stencil.index<8, 8>}} : '
    f"{GENERIC_TYPES}",
    f'"stencil.store"(%v, %b) {{lb = #stencil.index[0, 0], ub = #stencil.index[8, 8]}} : '
    f"{GENERIC_TYPES}",
]


@pytest.mark.parametrize("body", [NEW_BODY, GENERIC_BODY], ids=["pretty", "generic"])
@pytest.mark.parametrize("store", STORES)
def test_older_spellings_are_the_same_program(body: str, store: str):
    today = f"stencil.store %v to %b(<[0, 0], [8, 8]>) : {TYPES}"
    expected = load_text(OLD.replace("BODY", NEW_BODY).replace("STORE", today))
    assert str(load_text(OLD.replace("BODY", body).replace("STORE", store))) == str(expected)


def test_operations_are_on_their_lines(caplog: pytest.LogCaptureFixture):
    wrong = EARTH.replace(
        "[6, 5, 4])\n      : !stencil.temp<?x?x?xf64> to",
        "[9, 5, 4])\n      : !stencil.temp<?x?x?xf64> to",
    )
    with pytest.raises(CompileError, match=r"<program>:48"):
        timetile.compile(wrong, executor="cpu", cache=False)


def test_cells_in_turn_are_refused():
    text = EARTH.replace("stencil.apply (", "stencil.apply seq(dim = 2, range = 0 to 4, dir = 1) (")
    with pytest.raises(CompileError) as caught:
        timetile.compile(text, executor="cpu", cache=False)
    assert str(caught.value) == (
        "<program>:16: stencil.apply seq computes cells in turn along an axis, and cells of a "
        "stencil are independent; leave the apply out of the program"
    )


def test_an_error_in_any_spelling_names_the_place_in_the_text():
    with pytest.raises(CompileError, match="is not a valid program"):
        load_text("func @f(%a: !stencil.field<?xf64>) {\n  %0 = nonsense %a : f64\n  return\n}")


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("stencil.access %b [0, 1, 0] :", "stencil.access %b :"),
        ("stencil.load %2 :", "stencil.load :"),
        ("stencil.cast %in([-1, -1, 0] : [7, 6, 4])", "stencil.cast %in([-1, -1, 0])"),
        (
            "stencil.store %7 to %1([0, 0, 0] : [6, 5, 4])",
            "stencil.store %7 ([0, 0, 0] : [6, 5, 4])",
        ),
    ],
)
def test_an_operation_without_a_part_is_reported_by_the_parser(line: str, part: str):
    assert line in EARTH
    with pytest.raises(CompileError, match="is not a valid program"):
        load_text(EARTH.replace(line, part))
