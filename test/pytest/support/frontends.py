"""Programs in the style of frontends, drawn at random: combinations of a frontend's constructs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np


def offset(rank: int, axis: int, by: int) -> str:
    """A place beside the cell, along one axis."""
    return "[" + ", ".join(str(by if k == axis else 0) for k in range(rank)) + "]"


def box(low: list[int], high: list[int]) -> str:
    """The bounds of a store."""
    return f"<{low}, {high}>"


class Text:
    """Lines of a program over fields of one type, in `rank` axes of cells `kind`."""

    def __init__(self, seed: int, style: str, sizes: list[int], halo: int, kind: str):
        self.rng = random.Random(f"{style} {seed}")
        self.sizes, self.kind, self.rank = sizes, kind, len(sizes)
        spans = "".join(f"[{-halo},{n + halo}]x" for n in sizes)
        self.field = f"!stencil.field<{spans}{kind}>"
        self.temp = f"!stencil.temp<{'?x' * self.rank}{kind}>"
        self.memref = f"memref<{''.join(f'{n + 2 * halo}x' for n in sizes)}{kind}>"
        self.lines: list[str] = []
        self.count = 0

    def say(self, *lines: str) -> None:
        self.lines += lines

    def new(self, operation: str) -> str:
        """The result of an operation."""
        self.count += 1
        self.say(f"%n{self.count} = {operation}")
        return f"%n{self.count}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def access(self, operand: str, axis: int = 0, by: int = 0) -> str:
        return self.new(f"stencil.access {operand}{offset(self.rank, axis, by)} : {self.temp}")

    def number(self, value: float) -> str:
        return self.new(f"arith.constant {value} : {self.kind}")

    def op(self, name: str, first: str, second: str) -> str:
        return self.new(f"arith.{name} {first}, {second} : {self.kind}")

    def store(self, value: str, target: str, low: int = 0, less: int = 0) -> None:
        bounds = box([low] * self.rank, [n - less for n in self.sizes])
        self.say(f"stencil.store {value} to {target}({bounds}) : {self.temp} to {self.field}")

    def __str__(self) -> str:
        return "\n".join(self.lines)


# Devito's backend: rotating buffers, coefficients, subdomains, sources, timers.


def derivative(text: Text, operand: str, reach: int) -> str:
    """A sum over neighbours, each by a power of the spacing."""
    spacing = text.number(0.5)
    power = text.new("arith.constant -2 : i64")
    weight = text.new(f'"math.fpowi"({spacing}, {power}) : ({text.kind}, i64) -> {text.kind}')
    total: str | None = None
    for axis in range(text.rank):
        for by in sorted({-reach, -1, 1, reach}):
            term = text.op("mulf", weight, text.access(operand, axis, by))
            total = term if total is None else text.op("addf", total, term)
    assert total is not None
    return total


def source(text: Text, field: str) -> None:
    """Add amplitudes to cells at given coordinates."""
    rank, kind = text.rank, text.kind
    text.say(
        f"%cells = builtin.unrealized_conversion_cast {field} : {text.field} to {text.memref}",
        "%points = arith.constant 2 : index",
        "scf.for %p = %zero to %points step %one {",
    )
    places: list[str] = []
    for axis in range(rank):
        number = text.new(f"arith.constant {axis} : index")
        given = text.new(f"memref.load %coordinates[%p, {number}] : memref<2x{rank}x{kind}>")
        whole = text.new(f"math.floor {given} : {kind}")
        integer = text.new(f"arith.fptosi {whole} : {kind} to i64")
        index = text.new(f"arith.index_cast {integer} : i64 to index")
        places.append(text.new(f"arith.addi {index}, %one : index"))
    at = ", ".join(places)
    amplitude = text.new(f"memref.load %wave[%time, %p] : memref<16x2x{kind}>")
    old = text.new(f"memref.load %cells[{at}] : {text.memref}")
    summed = text.op("addf", old, amplitude)
    text.say(f"memref.store {summed}, %cells[{at}] : {text.memref}", "}")


def devito_apply(
    text: Text, name: str, others: list[str], has: dict[str, bool], reach: int
) -> None:
    """The update of one function, from the function and the other loaded functions."""
    line = f"!stencil.temp<?x{text.kind}>"
    operands = [
        f"%in{k} = {value} : {text.temp}" for k, value in enumerate([f"%{name}_now", *others])
    ]
    operands += [f"%m_in = %m_now : {text.temp}"] if has["coefficient"] else []
    operands += [f"%d_in = %d_now : {line}"] if has["profile"] else []
    operands += [f"%t_in = %now : {text.kind}"] if has["time"] else []
    text.say(f"%{name}_new = stencil.apply({', '.join(operands)}) -> ({text.temp}) {{")
    total = derivative(text, "%in0", reach)
    for k in range(len(others)):
        minus = text.new("arith.constant -1 : i64")
        factor = text.new(f"arith.sitofp {minus} : i64 to {text.kind}")
        total = text.op("addf", total, text.op("mulf", factor, text.access(f"%in{k + 1}")))
    if has["coefficient"]:
        total = text.op("divf", total, text.access("%m_in"))
    if has["profile"]:
        missing = "_, " * (text.rank - 1)
        total = text.op("mulf", total, text.new(f"stencil.access %d_in[{missing}0] : {line}"))
    if has["time"]:
        total = text.op("addf", total, "%t_in")
    total = text.op("mulf", total, text.number(0.03125))
    text.say(f"stencil.return {total} : {text.kind}", "}")


def devito_arguments(text: Text, has: dict[str, bool], line: str) -> list[str]:
    """The arguments of an operator besides functions of time."""
    given = [f"%m: {text.field}"] if has["coefficient"] else []
    given += [f"%d: {line}"] if has["profile"] else []
    kind = text.kind
    sparse = [f"%wave: memref<16x2x{kind}>", f"%coordinates: memref<2x{text.rank}x{kind}>"]
    given += sparse if has["source"] else []
    return given + (["%timers: !llvm.ptr"] if has["timers"] else [])


def devito(seed: int) -> str:
    """An operator of one to three functions of time."""
    draw = random.Random(seed)
    rank, reach, order = draw.randint(1, 3), draw.choice([1, 2]), draw.choice([1, 2])
    sizes = [draw.choice([7, 10] if rank < 3 else [5, 6]) for _ in range(rank)]
    text = Text(seed, "devito", sizes, reach, draw.choice(["f32", "f32", "f64"]))
    names = ["u", "v", "w"][: draw.randint(1, 3)]
    kinds = ["coefficient", "time", "source", "timers", "profile", "subdomain"]
    has = {kind: text.chance(0.4) for kind in kinds}
    has["profile"] &= rank > 1
    line = f"!stencil.field<[0,{sizes[-1]}]x{text.kind}>"
    buffers = [f"{name}{k}" for name in names for k in range(order + 1)]
    given = [f"%{buffer}_given: {text.field}" for buffer in buffers]
    given += devito_arguments(text, has, line)
    text.say(f"func.func @step({', '.join([*given, '%n: index'])}) {{")
    text.say("%zero = arith.constant 0 : index", "%one = arith.constant 1 : index")
    if has["timers"]:
        text.say("%start = func.call @timer_start() : () -> f64")
    carried = ", ".join(f"%{buffer} = %{buffer}_given" for buffer in buffers)
    fields = ", ".join([text.field] * len(buffers))
    text.say(
        f"%r:{len(buffers)} = scf.for %time = %zero to %n step %one iter_args({carried}) -> "
        f"({fields}) {{"
    )
    if has["time"]:
        text.say(
            "%ti = arith.index_cast %time : index to i64",
            f"%now = arith.sitofp %ti : i64 to {text.kind}",
        )
    if has["coefficient"]:
        text.say(f"%m_now = stencil.load %m : {text.field} -> {text.temp}")
    if has["profile"]:
        text.say(f"%d_now = stencil.load %d : {line} -> !stencil.temp<?x{text.kind}>")
    for k, name in enumerate(names):
        others = (
            [text.new(f"stencil.load %{name}2 : {text.field} -> {text.temp}")] if order == 2 else []
        )
        if k:
            other = f"%{names[k - 1]}{text.rng.randint(0, 1)}"
            others.append(text.new(f"stencil.load {other} : {text.field} -> {text.temp}"))
        text.say(f"%{name}_now = stencil.load %{name}0 : {text.field} -> {text.temp}")
        devito_apply(text, name, others, has, reach)
        inner = 1 if has["subdomain"] and k == 0 else 0
        text.store(f"%{name}_new", f"%{name}1", inner, 2 * inner)
    if has["source"]:
        source(text, f"%{names[-1]}1")
    turned = [f"%{name}{k}" for name in names for k in ([1, 0] if order == 1 else [1, 2, 0])]
    text.say(f"scf.yield {', '.join(turned)} : {fields}", "}")
    if has["timers"]:
        text.say("%end = func.call @timer_end(%start) : (f64) -> f64")
        text.say('"llvm.store"(%end, %timers) <{ordering = 0 : i64}> : (f64, !llvm.ptr) -> ()')
    text.say("func.return", "}")
    if has["timers"]:
        text.say(
            "func.func private @timer_start() -> f64", "func.func private @timer_end(f64) -> f64"
        )
    return str(text)


# PSyclone: pointers in descriptors, several results, fields written in place.


def psyclone(seed: int) -> str:
    """A kernel over fields behind pointers, in a loop or once."""
    draw = random.Random(seed)
    rank = draw.choice([2, 3])
    text = Text(seed, "psyclone", [draw.choice([6, 8])] * rank, 0, "f64")
    names = ["su", "sv", "sw", "sp"][: draw.randint(2, 4)]
    array = f"!llvm.array<{rank} x i64>"
    struct = f"!llvm.struct<(!llvm.ptr, !llvm.ptr, i64, {array}, {array})>"
    pointers = ", ".join(f"%{name}: !llvm.ptr" for name in names)
    text.say(f"func.func @step({pointers}, %dx: f64, %n: index) {{")
    for name in names:
        text.say(f"%{name}0 = llvm.mlir.undef : {struct}")
        for k in range(2):
            place = f'<{{"position" = array<i64: {k}>}}> : ({struct}, !llvm.ptr) -> {struct}'
            text.say(f'%{name}{k + 1} = "llvm.insertvalue"(%{name}{k}, %{name}) {place}')
        text.say(
            f"%{name}_m = builtin.unrealized_conversion_cast %{name}2 : {struct} to {text.memref}"
        )
        text.say(f"%{name}_f = stencil.external_load %{name}_m : {text.memref} -> {text.field}")
    text.say("%zero = arith.constant 0 : index", "%one = arith.constant 1 : index")
    looped = text.chance(0.7)
    text.say(*["scf.for %t = %zero to %n step %one {"] * looped)
    for name in names:
        text.say(f"%{name}_t = stencil.load %{name}_f : {text.field} -> {text.temp}")
    written = names[: text.rng.randint(1, len(names) - 1)]
    groups = [written] if text.chance(0.5) else [[name] for name in written]
    for number, group in enumerate(groups):
        operands = ", ".join(f"%i{name} = %{name}_t : {text.temp}" for name in names)
        results = ", ".join(f"%o{number}_{name}" for name in group)
        kinds = ", ".join([text.temp] * len(group))
        text.say(f"{results} = stencil.apply({operands}, %h = %dx : f64) -> ({kinds}) {{")
        returned: list[str] = []
        for k, name in enumerate(group):
            beside = names[(names.index(name) + 1) % len(names)]
            ahead, back = (
                text.access(f"%i{name}", k % rank, 1),
                text.access(f"%i{beside}", (k + 1) % rank, -1),
            )
            slope = text.op("mulf", text.op("subf", ahead, back), "%h")
            returned.append(text.op("addf", slope, text.access(f"%i{name}")))
        text.say(f"stencil.return {', '.join(returned)} : {', '.join(['f64'] * len(group))}", "}")
    for number, group in enumerate(groups):
        for name in group:
            text.store(f"%o{number}_{name}", f"%{name}_f", 1, text.rng.choice([1, 1, 2]))
    text.say(*["}"] * looped)
    for name in written:
        if text.chance(0.5):
            text.say(
                f"stencil.external_store %{name}_f to %{name}_m : {text.field} to {text.memref}"
            )
    text.say("func.return", "}")
    return str(text)


# OPS: successive parallel loops, kernels as calls, halos as separate loops.


def ops(seed: int) -> str:
    """Several loops over a few data sets; every loop may read or write any data set."""
    draw = random.Random(seed)
    text = Text(seed, "ops", [9] * draw.choice([1, 2]), 2, draw.choice(["f64", "f32"]))
    sets = [f"%d{k}" for k in range(draw.choice([2, 3]))]
    kind, field, temp = text.kind, text.field, text.temp
    text.say(f"func.func private @kernel(%a: {kind}, %b: {kind}) -> {kind} {{")
    text.say(
        f"func.return {text.op('mulf', text.op('addf', '%a', '%b'), text.number(0.5))} : {kind}",
        "}",
    )
    text.say(f"func.func @step({', '.join(f'{name}: {field}' for name in sets)}, %n: index) {{")
    text.say("%zero = arith.constant 0 : index", "%one = arith.constant 1 : index")
    text.say("scf.for %t = %zero to %n step %one {")
    for _ in range(draw.randint(2, 4)):
        read, written = text.rng.choice(sets), text.rng.choice(sets)
        low, high = [0] * text.rank, list(text.sizes)
        style = text.rng.choice(["outs", "values", "halo"])
        if style == "halo":
            axis = text.rng.randrange(text.rank)
            low[axis], high[axis] = -1, 0
        source_type = temp if style == "values" else field
        made = ""
        if style == "values":
            read = text.new(f"stencil.load {read} : {field} -> {temp}")
            text.count += 1
            made = f"%n{text.count}"
            text.say(f"{made} = stencil.apply(%x = {read} : {temp}) -> ({temp}) {{")
        else:
            text.say(f"stencil.apply(%x = {read} : {field}) outs ({written} : {field}) {{")
        first, second = (
            text.new(f"stencil.access %x{offset(text.rank, a, by)} : {source_type}")
            for a, by in ((0, -1 if style != "halo" else 1), (text.rank - 1, 2))
        )
        value = text.new(f"func.call @kernel({first}, {second}) : ({kind}, {kind}) -> {kind}")
        text.say(f"stencil.return {value} : {kind}")
        if style == "values":
            text.say(
                "}", f"stencil.store {made} to {written}({box(low, high)}) : {temp} to {field}"
            )
        else:
            text.say(f"}} to {box(low, high)}")
    text.say("}", "func.return", "}")
    return str(text)


STYLES: dict[str, Callable[[int], str]] = {"devito": devito, "psyclone": psyclone, "ops": ops}


def arguments(parameters: Any, seed: int, steps: int) -> list[Any]:
    """Arrays of random cells, small numbers for coordinates, and the number of steps."""
    values: list[Any] = []
    for p in parameters:
        if p.bounds is None:
            values.append(steps if p.name == "n" else 0.75 if p.is_read else None)
            continue
        shape = [high - low for low, high in zip(p.bounds.lb, p.bounds.ub)]
        cells = np.random.default_rng((seed, p.position)).random(shape) * (
            4 if p.name == "coordinates" else 1
        )
        values.append(cells.astype({"f32": np.float32, "f64": np.float64}[str(p.kind)]))
    return values
