"""A program's text in xDSL's stencil dialect."""

from __future__ import annotations

from support.description import Box, Program, Update, scalar_kind
from support.expressions import (
    Call,
    Constant,
    Coordinate,
    Expression,
    Power,
    Scalar,
    Select,
    Tap,
)

OPERATIONS = {
    "add": "arith.addf",
    "sub": "arith.subf",
    "mul": "arith.mulf",
    "div": "arith.divf",
    "neg": "arith.negf",
    "abs": "math.absf",
    "sqrt": "math.sqrt",
    "rsqrt": "math.rsqrt",
    "maximum": "arith.maximumf",
    "minimum": "arith.minimumf",
    "maxnum": "arith.maxnumf",
    "minnum": "arith.minnumf",
    "copysign": "math.copysign",
    "fma": "math.fma",
    "floor": "math.floor",
    "ceil": "math.ceil",
    "trunc": "math.trunc",
    "roundeven": "math.roundeven",
}


def spans(box: Box) -> str:
    """`[-1,9]x[-1,9]`."""
    return "x".join(f"[{a},{b}]" for a, b in zip(box.lower, box.upper, strict=True))


def float_literal(value: float) -> str:
    """
    The text of a number; parsing returns equal bits. The grammar needs a point before the exponent.
    """
    text = repr(value)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def integers(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))


class ProgramText:
    """
    Prints one program; carried names become the loop's arguments, with an underscore in front.
    """

    def __init__(self, program: Program):
        self.program = program
        self.fields = {
            b.name: f"!stencil.field<{spans(b.own_bounds)}x{b.element}>" for b in program.buffers
        }
        unknown = "?x" * program.rank
        self.temps = {
            b.name: f"!stencil.temp<{'?x' * len(b.own_bounds.lower)}{b.element}>"
            for b in program.buffers
        }
        self.temp = f"!stencil.temp<{unknown}{program.element}>"

    def inside(self, name: str) -> str:
        """How the loop's body names a buffer."""
        return f"%_{name}" if name in self.program.carried else f"%{name}"

    def print(self) -> str:
        program = self.program
        parameters = [f"%{b.name}: {self.fields[b.name]}" for b in program.buffers]
        parameters += [f"%{name}: {scalar_kind(name, program.element)}" for name in program.scalars]
        types = ", ".join(self.fields[name] for name in program.carried)
        carried = ", ".join(f"{self.inside(name)} = %{name}" for name in program.carried)
        rotated = ", ".join(self.inside(program.carried[k]) for k in program.rotation)
        updates = "\n".join(self.update(k, update) for k, update in enumerate(program.updates))
        return f"""\
func.func @run({", ".join(parameters)}, %steps: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:{len(program.carried)} = scf.for %t = %zero to %steps step %one
      iter_args({carried}) -> ({types}) {{
{updates}
    scf.yield {rotated} : {types}
  }}
  func.return
}}
"""

    def update(self, number: int, update: Update) -> str:
        """Loads, the apply, and a store for each box of the results."""
        program = self.program
        lines = [
            f"%load{number}_{name} = stencil.load {self.inside(name)} : "
            f"{self.fields[name]} -> {self.temps[name]}"
            for name in update.sources
        ]
        scalars = [n.name for n in update.nodes if isinstance(n, Scalar)]
        operands = [f"%at_{n} = %load{number}_{n} : {self.temps[n]}" for n in update.sources]
        operands += [
            f"%in_{n} = %{n} : {scalar_kind(n, program.element)}" for n in dict.fromkeys(scalars)
        ]
        results = ", ".join([self.temp] * len(update.results))
        count = f":{len(update.results)}" if len(update.results) > 1 else ""
        lines.append(
            f"%out{number}{count} = stencil.apply({', '.join(operands)}) -> ({results}) {{"
        )
        values: dict[Expression, str] = {}
        for k, node in enumerate(update.nodes):
            values[node] = f"%x{k}"
            if isinstance(node, Scalar) and scalar_kind(node.name, "f64") == "f64":
                values[node] = f"%in_{node.name}"
            lines += [f"  {line}" for line in self.node(values[node], node, values)]
        returned = ", ".join(values[r] for r in update.results)
        kinds = ", ".join([program.element] * len(update.results))
        lines += [f"  stencil.return {returned} : {kinds}", "}"]
        for store in update.stores:
            result = f"%out{number}" + (f"#{store.result}" if count else "")
            box = f"<[{integers(store.box.lower)}], [{integers(store.box.upper)}]>"
            lines.append(
                f"stencil.store {result} to {self.inside(store.buffer)}({box}) : "
                f"{self.temp} to {self.fields[store.buffer]}"
            )
        return "\n".join(f"    {line}" for line in lines)

    def node(self, name: str, node: Expression, values: dict[Expression, str]) -> list[str]:
        """The operations of one expression."""
        kind = self.program.element
        match node:
            case Tap(buffer=buffer, offset=offset):
                field = self.program.buffer(buffer)
                own, axes = field.element, field.axes
                at = [
                    str(distance) if axes is None or axis in axes else "_"
                    for axis, distance in enumerate(offset)
                ]
                access = f"stencil.access %at_{buffer}[{', '.join(at)}] : {self.temps[buffer]}"
                if own == kind:
                    return [f"{name} = {access}"]
                word = "arith.extf" if kind == "f64" else "arith.truncf"
                return [f"{name}_n = {access}", f"{name} = {word} {name}_n : {own} to {kind}"]
            case Scalar(name=scalar):
                return converted(name, f"%in_{scalar}", scalar_kind(scalar, kind), kind)
            case Constant(value=value):
                return [f"{name} = arith.constant {float_literal(value)} : {kind}"]
            case Coordinate(axis=axis, shift=shift):
                offset = tuple(shift if k == axis else 0 for k in range(self.program.rank))
                return [
                    f"{name}_i = stencil.index {axis} <[{integers(offset)}]>",
                    f"{name}_j = arith.index_cast {name}_i : index to i64",
                    f"{name} = arith.sitofp {name}_j : i64 to {kind}",
                ]
            case Call(name=word, arguments=arguments):
                operands = ", ".join(values[a] for a in arguments)
                return [f"{name} = {OPERATIONS[word]} {operands} : {kind}"]
            case Power(base=base, exponent=exponent):
                return [
                    f"{name}_n = arith.constant {exponent} : i32",
                    f"{name} = math.fpowi {values[base]}, {name}_n : {kind}, i32",
                ]
            case Select():
                left, right, then, other = (values[n] for n in node.operands)
                return [
                    f"{name}_c = arith.cmpf {node.predicate}, {left}, {right} : {kind}",
                    f"{name} = arith.select {name}_c, {then}, {other} : {kind}",
                ]
            case _:
                raise TypeError(f"{node} is no expression")


def converted(name: str, value: str, source: str, target: str) -> list[str]:
    """The operations that convert a scalar of any type to a float."""
    match source:
        case "i1":
            return [f"{name} = arith.uitofp {value} : i1 to {target}"]
        case "i32" | "i64":
            return [f"{name} = arith.sitofp {value} : {source} to {target}"]
        case "index":
            return [
                f"{name}_j = arith.index_cast {value} : index to i64",
                f"{name} = arith.sitofp {name}_j : i64 to {target}",
            ]
        case _:
            return []


def program_text(program: Program) -> str:
    """The program as text."""
    return ProgramText(program).print()
