"""
Cells drawn at random: any operation of the table on taps, scalars, coordinates, constants and each
other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from xdsl.dialects import math as xmath
from xdsl.ir import Attribute

from support.cell_operations import Case, cases, f32, f64, i1, i32, i64, index

LEFT_OUT = (xmath.IPowIOp, xmath.FPowIOp)
"""Powers, which take more operations than all others of a cell together."""

CASES = [case for case in cases() if case.operation not in LEFT_OUT]
TYPES: tuple[Attribute, ...] = (f64, f32, i64, i32, i1, index)
LITERALS: dict[Attribute, tuple[str, ...]] = {
    f64: ("0.5", "-1.25", "3.0"),
    f32: ("0.25", "-2.0", "1.5"),
    i64: ("3", "-2", "0"),
    i32: ("5", "-1", "0"),
    i1: ("true", "false"),
    index: ("2", "-1", "0"),
}


@dataclass
class Body:
    """The lines of a cell so far, and the values by type."""

    random: Random
    lines: list[str] = field(default_factory=list[str])
    values: dict[Attribute, list[str]] = field(default_factory=lambda: {kind: [] for kind in TYPES})

    def define(self, kind: Attribute, text: str) -> str:
        """A new value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"      {name} = {text}")
        self.values[kind].append(name)
        return name

    def constant(self, kind: Attribute) -> str:
        """A new constant."""
        number = self.random.choice(LITERALS[kind])
        return self.define(kind, f"arith.constant {number}" + ("" if kind == i1 else f" : {kind}"))

    def value(self, kind: Attribute) -> str:
        """A value of a type: an existing value, or a constant."""
        known = self.values[kind]
        return (
            self.random.choice(known[-12:])
            if known and self.random.random() < 0.8
            else self.constant(kind)
        )

    def apply(self, case: Case) -> str:
        """An operation on some values."""
        operands = ", ".join(self.value(kind) for kind in case.operands)
        kinds = ", ".join(map(str, case.operands))
        made = f'"{case.operation.name}"({operands}){case.properties} : ({kinds}) -> {case.result}'
        return self.define(case.result, made)

    def tap(self, offset: tuple[int, ...]) -> str:
        """A neighbour's cell."""
        return self.define(f64, f"stencil.access %x{list(offset)} : !stencil.temp<?x?xf64>")


def term(body: Body, total: str | None, offset: tuple[int, ...]) -> str:
    """A sum so far, plus or minus a tap weighted by a value independent of taps."""
    tap = body.tap(offset)
    weight = body.random.choice((
        lambda: body.constant(f64),
        lambda: body.define(f64, f"arith.extf {body.constant(f32)} : f32 to f64"),
        lambda: body.define(f64, f"arith.negf {body.constant(f64)} : f64"),
        lambda: body.define(f64, f"arith.mulf %k, {body.constant(f64)} : f64"),
        lambda: "%k",
    ))()  # fmt: skip
    product = body.define(f64, f"arith.mulf {weight}, {tap} : f64")
    if total is None:
        return product
    word = body.random.choice(("addf", "subf"))
    return body.define(f64, f"arith.{word} {total}, {product} : f64")


def sums(random: Random, results: int, *, columns: bool) -> Body:
    """One or two sums over successive planes or columns, of terms with many kinds of weights."""
    body = Body(random)
    offsets = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    if columns:
        offsets.sort(key=lambda offset: offset[::-1])
    totals: list[str | None] = [None] * results
    for offset in offsets:
        for k in range(results):
            totals[k] = term(body, totals[k], offset)
    body.lines.append(
        "      stencil.return " + ", ".join(map(str, totals)) + " : " + ", ".join(["f64"] * results)
    )
    return body


def anything(random: Random, count: int) -> Body:
    """Operations of all kinds; the last floats are summed for the result."""
    body = Body(random)
    for offset in ((-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)):
        body.tap(offset)
    body.values[f64].append("%k")
    body.values[index].append(body.define(index, "stencil.index 0 <[0, 0]>"))
    for case in random.sample(CASES, count):
        body.apply(case)
    total = body.tap((0, 0))
    for number in [*body.values[f64][-6:]]:
        total = body.define(f64, f"arith.addf {total}, {number} : f64")
    # A finite result, for any operations.
    zero, near = body.constant(f64), body.define(i1, f"arith.cmpf olt, {total}, {total} : f64")
    result = body.define(f64, f"arith.select {near}, {zero}, {total} : f64")
    body.lines.append(f"      stencil.return {result} : f64")
    return body


def program_of(body: Body, results: int = 1) -> str:
    """A time loop over a cell; `results` fields take turns with as many others."""
    field_, temp = "!stencil.field<[-1,13]x[-1,69]xf64>", "!stencil.temp<?x?xf64>"
    names = [f"%{letter}{k}" for k in range(results) for letter in "ab"]
    arguments = ", ".join(f"{name}: {field_}" for name in names)
    carried = ", ".join(f"%{letter}i{k} = %{letter}{k}" for k in range(results) for letter in "ab")
    kinds = ", ".join([field_] * 2 * results)
    turned = ", ".join(f"%bi{k}, %ai{k}" for k in range(results))
    made = ", ".join(f"%y{k}" for k in range(results))
    stores = "\n".join(
        f"    stencil.store %y{k} to %bi{k}(<[0, 0], [12, 68]>) : {temp} to {field_}"
        for k in range(results)
    )
    text = "\n".join(body.lines)
    return f"""func.func @drawn({arguments}, %k0: f64, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:{2 * results} = scf.for %t = %c0 to %n step %c1 iter_args({carried}) -> ({kinds}) {{
    %l = stencil.load %ai0 : {field_} -> {temp}
    {made} = stencil.apply(%x = %l : {temp}, %k = %k0 : f64) -> ({", ".join([temp] * results)}) {{
{text}
    }}
{stores}
    scf.yield {turned} : {kinds}
  }}
  func.return
}}"""
