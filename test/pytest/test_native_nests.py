"""
Loops of the host as machine code: the bits, the results and the refusals of the interpreter, which
runs the host of the executor `numpy`.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import timetile
from support.sizes import seeds
from timetile.passes.diagnostics import CompileError
from timetile.runtime.host.functions import NestRun
from timetile.runtime.native.nests import HostNests

CELLS = 40

TIME_LOOP = """
func.func @shot(%u : !stencil.field<[-1,13]x[-1,11]xf64>, %v : !stencil.field<[-1,13]x[-1,11]xf64>,
    %wave : memref<40xf64>, %heard : memref<40x3xf64>, %at : memref<3xi64>, %steps : index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %end:2 = scf.for %t = %zero to %steps step %one iter_args(%a = %u, %b = %v)
      -> (!stencil.field<[-1,13]x[-1,11]xf64>, !stencil.field<[-1,13]x[-1,11]xf64>) {
    %l = stencil.load %a : !stencil.field<[-1,13]x[-1,11]xf64> -> !stencil.temp<?x?xf64>
    %r = stencil.apply(%x = %l : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
      %w = stencil.access %x[0, -1] : !stencil.temp<?x?xf64>
      %e = stencil.access %x[1, 1] : !stencil.temp<?x?xf64>
      %c = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
      %s = arith.addf %w, %e : f64
      %d = arith.subf %s, %c : f64
      stencil.return %d : f64
    }
    stencil.store %r to %b(<[0, 0], [12, 10]>)
      : !stencil.temp<?x?xf64> to !stencil.field<[-1,13]x[-1,11]xf64>
    %m = builtin.unrealized_conversion_cast %b
      : !stencil.field<[-1,13]x[-1,11]xf64> to memref<14x12xf64>
    %f = memref.load %wave[%t] : memref<40xf64>
    %q = math.tanh %f : f64
    "scf.parallel"(%one, %one, %three, %three, %one, %one)
        <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
    ^bb0(%i: index, %j: index):
      %old = "memref.atomic_rmw"(%q, %m, %i, %j) <{kind = 0 : i64}>
        : (f64, memref<14x12xf64>, index, index) -> f64
      scf.reduce
    }) : (index, index, index, index, index, index) -> ()
    %turn = arith.remsi %t, %three : index
    %now = arith.cmpi eq, %turn, %one : index
    scf.if %now {
      scf.for %k = %zero to %three step %one {
        %p = memref.load %at[%k] : memref<3xi64>
        %y = arith.index_cast %p : i64 to index
        %h = memref.load %m[%y, %k] : memref<14x12xf64>
        memref.store %h, %heard[%t, %k] : memref<40x3xf64>
      }
    }
    scf.yield %b, %a
      : !stencil.field<[-1,13]x[-1,11]xf64>, !stencil.field<[-1,13]x[-1,11]xf64>
  }
  func.return
}
"""
"""A time loop with a sweep, a source in four cells, and receivers noted in some steps."""


def arrays_of_shot(seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    fields = [random.random((14, 12)) for _ in range(2)]
    return [*fields, random.random(40), np.zeros((40, 3)), random.integers(0, 14, 3)]


def same(a: Any, b: Any) -> bool:
    return bool((np.asarray(a).view(np.uint8) == np.asarray(b).view(np.uint8)).all())


CELL_PROGRAMS: dict[str, Any] = {}
"""Programs of a single cell, by the name of a function."""


class Seen:
    """Counts the loops run by machine code, and the loops left to the interpreter."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.compiled = self.left = 0
        plain = HostNests.run

        def run(nests: HostNests, *given: Any) -> NestRun | None:
            found = plain(nests, *given)
            self.compiled += found is not None
            self.left += found is None
            return found

        monkeypatch.setattr(HostNests, "run", run)


def test_a_time_loop_of_sweeps_and_points_runs_as_one_piece_of_machine_code(
    monkeypatch: pytest.MonkeyPatch,
):
    """Arrays, returned buffers, steps, cells and written buffers are those of the interpreter."""
    seen = Seen(monkeypatch)
    native, judge = (timetile.compile(TIME_LOOP, executor=e) for e in ("cpu", "numpy"))
    for steps in (0, 1, 2, 7, 31):
        own, other = arrays_of_shot(steps), arrays_of_shot(steps)
        a, b = native(*own, steps=steps), judge(*other, steps=steps)
        assert all(same(x, y) for x, y in zip(own, other))
        assert a == b
        places = [[k for k, x in enumerate(given) if any(x is y for y in r.buffers)] for given, r in
                  ((own, a), (other, b))]  # fmt: skip
        assert places[0] == places[1]
    assert (seen.compiled, seen.left) == (5, 0)


def test_numbers_of_the_host_have_the_bits_of_cells():
    """NumPy's own functions differ from the mathematical library's in the last bit."""
    names = ("tanh", "exp", "sin", "cos", "tan", "log")
    lines = "\n".join(
        f"%{n} = math.{n} %x : f32\n%at_{n} = arith.constant {k} : index\n"
        f"memref.store %{n}, %to[%at_{n}] : memref<6xf32>"
        for k, n in enumerate(names)
    )
    host = f"func.func @f(%x : f32, %to : memref<6xf32>) {{\n{lines}\nfunc.return }}"
    field = "!stencil.field<[0,1]xf32>"
    for number in np.random.default_rng(0).uniform(0.1, 6, 25).astype(np.float32):
        found, cells = np.zeros(6, np.float32), list[Any]()
        timetile.compile(host, executor="numpy")(number, found)
        for name in names:
            step = f"""func.func @g(%u : {field}, %x : f32) {{
              %r = stencil.apply(%y = %x : f32) -> (!stencil.temp<?xf32>) {{
                %v = math.{name} %y : f32
                stencil.return %v : f32
              }}
              stencil.store %r to %u(<[0], [1]>) : !stencil.temp<?xf32> to {field}
              func.return }}"""
            u = np.zeros(1, np.float32)
            CELL_PROGRAMS.setdefault(name, timetile.compile(step, executor="numpy"))(u, number)
            cells.append(u[0])
        assert same(found, np.array(cells))


def test_integers_of_the_host_are_counted_as_in_cells():
    """The interpreter counts loops with Python's integers: remainders and shifts need types."""
    text = """
func.func @f(%to : memref<8xi64>, %n : index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  scf.for %k = %zero to %n step %one {
    %r = arith.remsi %k, %three : index
    %q = arith.divsi %k, %three : index
    %s = arith.shli %k, %r : index
    %t = arith.addi %s, %q : index
    %v = arith.index_cast %t : index to i64
    memref.store %v, %to[%k] : memref<8xi64>
  }
  func.return
}
"""
    for executor in ("numpy", "cpu"):
        found = np.zeros(8, np.int64)
        timetile.compile(text, executor=executor)(found, 8)
        assert found.tolist() == [(k << k % 3) + k // 3 for k in range(8)]


def test_runs_in_pieces_have_the_bits_of_one_run(monkeypatch: pytest.MonkeyPatch):
    """A call of machine code takes few steps if steps update many cells."""
    monkeypatch.setattr("timetile.runtime.native.nests.CELLS_PER_CALL", 700)
    native, judge = (timetile.compile(TIME_LOOP, executor=e) for e in ("cpu", "numpy"))
    own, other = arrays_of_shot(1), arrays_of_shot(1)
    a, b = native(*own, steps=31), judge(*other, steps=31)
    assert all(same(x, y) for x, y in zip(own, other))
    assert a == b


def unheard(done: int, total: int) -> None:
    """Progress that nobody hears of."""


def test_loops_inside_a_time_loop_for_several_threads_run_as_machine_code(
    monkeypatch: pytest.MonkeyPatch,
):
    """Progress, too, leaves the time loop to the interpreter, but not the loops inside."""
    seen = Seen(monkeypatch)
    monkeypatch.setattr("timetile.runtime.native.loops.CELLS_PER_THREAD", 1)
    judge = timetile.compile(TIME_LOOP, executor="numpy")
    given: list[dict[str, Any]] = [{"progress": unheard}, {}]
    for number, call in enumerate(given):
        native = timetile.compile(TIME_LOOP, executor="cpu", threads=1 + number)
        own, other = arrays_of_shot(3), arrays_of_shot(3)
        native(*own, steps=6, **call)
        judge(*other, steps=6)
        assert all(same(x, y) for x, y in zip(own, other))
        assert (seen.compiled, seen.left) == (8 * (number + 1), number + 1)
        monkeypatch.setattr("timetile.runtime.native.nests.CELLS_FOR_A_TEAM", 0)


@pytest.mark.parametrize("step", [0, 4])
def test_an_index_outside_is_refused_with_the_interpreters_sentence(step: int):
    """The cells written before are those of the interpreter, too."""
    native, judge = (timetile.compile(TIME_LOOP, executor=e) for e in ("cpu", "numpy"))
    own, other = arrays_of_shot(5), arrays_of_shot(5)
    for given in (own, other):
        given[4][2] = -1 if step == 0 else 14
    said: list[str] = []
    for program, given in ((native, own), (judge, other)):
        with pytest.raises(CompileError, match="along axis 0, and there are 14") as error:
            program(*given, steps=9)
        said.append(str(error.value))
    assert said[0] == said[1]
    assert all(same(x, y) for x, y in zip(own, other))


# Nests drawn at random.

BINARY = ("addf", "subf", "mulf", "divf", "maximumf", "minnumf")
UNARY = ("math.tanh", "math.exp", "math.sqrt", "math.absf", "arith.negf", "math.sin", "math.floor")


class DrawnNest:
    """The text of a nest on arrays of one type, with a carried sum."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.kind = self.random.choice(("f64", "f32"))
        self.lines: list[str] = []
        self.numbers = ["%s", "%q"]

    def add(self, text: str) -> str:
        name = f"%d{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def draw(self) -> str:
        random, kind = self.random, self.kind
        for _ in range(random.randint(2, 8)):
            match random.randrange(4):
                case 0:
                    a, b = random.choices(self.numbers, k=2)
                    found = self.add(f"arith.{random.choice(BINARY)} {a}, {b} : {kind}")
                case 1:
                    found = self.add(
                        f"{random.choice(UNARY)} {random.choice(self.numbers)} : {kind}"
                    )
                case 2:
                    place = self.add("memref.load %places[%i, %j] : memref<5x8xi32>")
                    index = self.add(f"arith.index_cast {place} : i32 to index")
                    found = self.add(f"memref.load %u[{index}] : memref<{CELLS}x{kind}>")
                case _:
                    a, b = random.choices(self.numbers, k=2)
                    low = self.add(f"arith.cmpf olt, {a}, {b} : {kind}")
                    found = self.add(f"arith.select {low}, {b}, {a} : {kind}")
            self.numbers.append(found)
        return self.text()

    def text(self) -> str:
        kind, last = self.kind, self.numbers[-1]
        change = self.random.choice((0, 9, 2))
        body = "\n        ".join(self.lines)
        return f"""
func.func @nest(%u : memref<{CELLS}x{kind}>, %places : memref<5x8xi32>, %sum : memref<1x{kind}>,
    %q : {kind}, %rows : index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %eight = arith.constant 8 : index
  %none = arith.constant -0.0 : {kind}
  %all = scf.for %i = %zero to %rows step %two iter_args(%t = %none) -> ({kind}) {{
    %row = scf.for %j = %zero to %eight step %one iter_args(%s = %t) -> ({kind}) {{
        {body}
        %p = memref.load %places[%i, %j] : memref<5x8xi32>
        %k = arith.index_cast %p : i32 to index
        %old = "memref.atomic_rmw"({last}, %u, %k) <{{kind = {change} : i64}}>
          : ({kind}, memref<{CELLS}x{kind}>, index) -> {kind}
        %odd = arith.cmpf ogt, %old, {last} : {kind}
        %new = scf.if %odd -> ({kind}) {{
          %n = arith.addf %s, %old : {kind}
          scf.yield %n : {kind}
        }} else {{
          scf.yield %s : {kind}
        }}
        scf.yield %new : {kind}
    }}
    scf.yield %row : {kind}
  }}
  memref.store %all, %sum[%zero] : memref<1x{kind}>
  func.return
}}
"""


@pytest.mark.parametrize("seed", seeds(60))
def test_drawn_nests_have_the_bits_of_the_interpreter(seed: int, monkeypatch: pytest.MonkeyPatch):
    """Also for infinite cells, zeros of both signs, and cells that are NaN."""
    seen = Seen(monkeypatch)
    drawn = DrawnNest(seed)
    text = drawn.draw()
    dtype = {"f64": np.float64, "f32": np.float32}[drawn.kind]
    results: list[list[Any]] = []
    for executor in ("cpu", "numpy"):
        random = np.random.default_rng(seed)
        u = random.normal(size=CELLS).astype(dtype)
        u[:5] = 0.0, -0.0, np.inf, np.nan, 1e-310
        places = random.integers(0, CELLS, (5, 8)).astype(np.int32)
        total = np.zeros(1, dtype)
        timetile.compile(text, executor=executor)(u, places, total, 0.75, 5)
        results.append([np.where(np.isnan(u), dtype(7), u), np.nan_to_num(total, nan=7.0)])
    assert seen.compiled == 1
    assert all(same(a, b) for a, b in zip(*results))
