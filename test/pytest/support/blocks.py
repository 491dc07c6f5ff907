"""Random blocks of the stencil dialect: loads, applies, combines and stores in any legal order."""

from __future__ import annotations

import random

LOW, HIGH, HALO = 0, 12, 6
FIELDS = 4
FIELD = f"!stencil.field<[{LOW - HALO},{HIGH + HALO}]xf64>"
TEMP = "!stencil.temp<?xf64>"


class Block:
    """
    Text of operations over fields `%f0` to `%f3`. A value has the distance of its reads beyond a
    store's box, to keep programs from reading outside a field.
    """

    def __init__(self, rng: random.Random, depth: str = "  "):
        self.rng, self.indent = rng, depth
        self.lines: list[str] = []
        self.values: dict[str, int] = {}
        self.count = 0
        self.fields = [f"%f{k}" for k in range(FIELDS)]

    def say(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def new(self, reach: int) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.values[name] = reach
        return name

    def load(self) -> None:
        field = self.rng.choice(self.fields)
        self.say(f"{self.new(0)} = stencil.load {field} : {FIELD} -> {TEMP}")

    def apply(self) -> None:
        usable = [name for name, reach in self.values.items() if reach + 2 <= HALO]
        if not usable:
            return self.load()
        sources = [self.rng.choice(usable) for _ in range(self.rng.randint(1, 2))]
        reach = max(self.values[s] for s in sources) + 2
        results = self.rng.randint(1, 2)
        names = [self.new(reach) for _ in range(results)]
        args = ", ".join(f"%x{k} = {s} : {TEMP}" for k, s in enumerate(sources))
        kinds = ", ".join([TEMP] * results)
        self.say(f"{', '.join(names)} = stencil.apply({args}) -> ({kinds}) {{")
        for k in range(len(sources)):
            for n in range(2):
                offset = self.rng.randint(-2, 2)
                self.say(f"  %a{k}{n} = stencil.access %x{k}[{offset}] : {TEMP}")
        last = len(sources) - 1
        if self.rng.random() < 0.25:
            self.computed_place(f"%x{last}", f"%a{last}1")
        other = "%far" if self.lines[-1].endswith("dyn") else f"%a{last}1"
        self.say(f"  %s = arith.subf %a00, {other} : f64")
        self.say(f"  %h = arith.constant {self.rng.choice(['0.5', '0.75', '-1.25'])} : f64")
        self.say("  %m = arith.mulf %s, %h : f64")
        self.say(
            f"  stencil.return {', '.join(['%m', '%s'][:results])} : {', '.join(['f64'] * results)}"
        )
        self.say("}")
        return None

    def computed_place(self, operand: str, cell: str) -> None:
        """`%far`: the cell before or the cell after, chosen by the value of a cell."""
        self.say("  %i = stencil.index 0 <[0]>")
        self.say("  %one = arith.constant 1 : index")
        self.say("  %below = arith.subi %i, %one : index")
        self.say("  %above = arith.addi %i, %one : index")
        self.say("  %limit = arith.constant 0.25 : f64")
        self.say(f"  %less = arith.cmpf olt, {cell}, %limit : f64")
        self.say("  %near = arith.select %less, %below, %above : index")
        place = "%near"
        if self.rng.random() < 0.75:
            # A product is no known offset.
            self.say("  %product = arith.muli %near, %one : index")
            place = "%product"
        self.say(
            f"  %far = stencil.dyn_access {operand}[{place}] in <[-1]> : <[1]> : {TEMP} // dyn"
        )

    def combine(self) -> None:
        if len(self.values) < 2:
            return self.load()
        low, high = self.rng.sample(sorted(self.values), 2)
        name = self.new(max(self.values[low], self.values[high]))
        at = self.rng.randint(LOW - 2, HIGH + 2)
        self.say(
            f"{name} = stencil.combine 0 at {at} lower = ({low} : {TEMP}) upper = ({high} : "
            f"{TEMP}) : {TEMP}"
        )
        return None

    def store(self) -> None:
        if not self.values:
            return self.load()
        value = self.rng.choice(sorted(self.values)[-4:])
        low = self.rng.randint(LOW, HIGH - 2)
        high = self.rng.randint(low + 1, HIGH)
        if self.rng.random() < 0.5:
            low, high = LOW, HIGH
        field = self.rng.choice(self.fields)
        self.say(f"stencil.store {value} to {field}(<[{low}], [{high}]>) : {TEMP} to {FIELD}")
        return None

    def pick(self) -> None:
        """Two names for two of the fields, whichever the number of the step says."""
        one, other = self.rng.sample(range(FIELDS), 2)
        self.say("%two = arith.constant 2 : index")
        self.say("%rest = arith.remui %t, %two : index")
        self.say("%even = arith.cmpi eq, %rest, %c0 : index")
        self.say(f"%g0 = arith.select %even, %f{one}, %f{other} : {FIELD}")
        self.say(f"%g1 = arith.select %even, %f{other}, %f{one} : {FIELD}")
        self.fields += ["%g0", "%g1"]

    def cell(self) -> None:
        """The host changes a single cell."""
        field, self.count = self.rng.randrange(FIELDS), self.count + 1
        k = self.count
        kind = f"memref<{HIGH - LOW + 2 * HALO}xf64>"
        self.say(f"%m{k} = builtin.unrealized_conversion_cast %f{field} : {FIELD} to {kind}")
        self.say(f"%i{k} = arith.constant {self.rng.randrange(HIGH)} : index")
        self.say(f"%c{k} = memref.load %m{k}[%i{k}] : {kind}")
        self.say(f"%d{k} = arith.addf %c{k}, %c{k} : f64")
        self.say(f"memref.store %d{k}, %m{k}[%i{k}] : {kind}")


def random_program(seed: int, *, looped: bool, host: bool) -> str:
    """A function of four fields; with `looped` the block is the body of a loop of `%n` steps."""
    rng = random.Random(seed)
    block = Block(rng, "    " if looped else "  ")
    kinds = [block.load, block.apply, block.apply, block.combine, block.store, block.store]
    if looped and host and seed % 3 == 0:
        block.pick()
    block.load()
    for _ in range(rng.randint(4, 12)):
        rng.choice([*kinds, block.cell] if host else kinds)()
    block.store()
    fields = ", ".join(f"%f{k}: {FIELD}" for k in range(FIELDS))
    body = block.lines
    if looped:
        body = [
            "  %c0 = arith.constant 0 : index",
            "  %c1 = arith.constant 1 : index",
            "  scf.for %t = %c0 to %n step %c1 {",
            *body,
            "  }",
        ]
    lines = "\n".join(body)
    return f"func.func @f({fields}, %n: index) {{\n{lines}\n  return\n}}\n"
