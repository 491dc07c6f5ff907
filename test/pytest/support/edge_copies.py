"""Time loops that copy cells beside the box of their update, as frontends without boundaries do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from timetile.dialects.temporal.boundary import MIRRORS, Kind, Side


@dataclass
class CopiedEdges:
    """
    A loop on two buffers, or on three for a wave, with sums of `reach` cells around each cell.
    `before`: the rows beside the box are copied before the box is updated.
    """

    sizes: tuple[int, ...]
    sides: Sequence[tuple[Side, Side]]
    reach: int = 1
    before: bool = False
    wave: bool = False
    corners: bool = False
    functions: list[str] = field(default_factory=list[str])
    updates: list[str] = field(default_factory=list[str])
    scratch: list[str] = field(default_factory=list[str])

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of the fields."""
        return tuple(size + 2 * self.reach for size in self.sizes)

    @property
    def buffers(self) -> int:
        """The number of rotating buffers."""
        return 3 if self.wave else 2

    def taps(self) -> list[tuple[int, ...]]:
        """The offsets of the cells summed."""
        alone: list[tuple[int, ...]] = []
        for axis, distance in product(range(self.rank), range(-self.reach, self.reach + 1)):
            if distance:
                alone.append((0,) * axis + (distance,) + (0,) * (self.rank - axis - 1))
        return [*alone, *(product((-1, 1), repeat=self.rank) if self.corners else ())]

    def cell(self) -> None:
        """The function of a cell: a weighted sum, minus the level before for a wave."""
        count = len(self.taps())
        lines = ["%s0 = arith.constant 0.125 : f64"]
        for k in range(count):
            lines += [f"%c{k} = arith.constant {0.03 + 0.01 * k:.2f} : f64",
                      f"%m{k} = arith.mulf %x{k}, %c{k} : f64",
                      f"%s{k + 1} = arith.addf %s{k}, %m{k} : f64"]  # fmt: skip
        result = f"%s{count}"
        if self.wave:
            lines.append(f"%w = arith.subf {result}, %x{count} : f64")
            result = "%w"
        given = ", ".join(f"%x{k}: f64" for k in range(count + self.wave))
        body = "\n".join(lines)
        self.functions.append(
            f"func.func private @cell({given}) -> f64 {{\n{body}\nfunc.return {result} : f64\n}}"
        )
        self.functions.append("func.func private @copy(%x: f64) -> f64 { func.return %x : f64 }")

    def main(self) -> None:
        """The update of the box."""
        low, high = [self.reach] * self.rank, [self.reach + size for size in self.sizes]
        read = [f"{self.source}{list(tap)}" for tap in self.taps()]
        if self.wave:
            read.append(f"%b0{[0] * self.rank}")
        self.updates.append(
            f"temporal.update %b{self.buffers - 1} = @cell({', '.join(read)}) in <{low}, {high}>"
        )

    @property
    def source(self) -> str:
        """The buffer read around each cell."""
        return f"%b{self.buffers - 2}"

    def copies(self) -> None:
        """The copies, axis after axis: later axes copy the cells beside earlier ones."""
        target = self.source if self.before else f"%b{self.buffers - 1}"
        for axis, kinds in enumerate(self.sides):
            for side, kind in enumerate(kinds):
                for place in range(self.reach) if kind is not Kind.KEEP else ():
                    self.copy(target, axis, side, place, kind)

    def copy(self, target: str, axis: int, side: int, place: int, kind: Side) -> None:
        """The copy of a plane beside the box, `place` planes from the box."""
        size, reach = self.sizes[axis], self.reach
        low = [0 if a < axis else reach for a in range(self.rank)]
        high = [n + (2 * reach if a < axis else reach) for a, n in enumerate(self.sizes)]
        low[axis] = reach + size + place if side else reach - 1 - place
        high[axis] = low[axis] + 1
        box, here = f"<{low}, {high}>", [0] * self.rank
        if not isinstance(kind, Kind):
            name = f"@number{len(self.functions)}"
            self.functions.append(
                f"func.func private {name}() -> f64 {{\n%n = arith.constant {kind} : f64\n"
                "func.return %n : f64\n}"
            )
            self.updates.append(f"temporal.update {target} = {name}() in {box}")
            return
        distance = 2 * place + (1 if kind is Kind.MIRROR else 2) if kind in MIRRORS else size
        offset = [0] * self.rank
        offset[axis] = -distance if side else distance
        between = f"%s{len(self.scratch)}"
        ends = "x".join(f"[{a},{b}]" for a, b in zip(low, high))
        self.scratch.append(f"!stencil.field<{ends}xf64>")
        self.updates.append(f"temporal.update {between} = @copy({target}{offset}) in {box}")
        self.updates.append(f"temporal.update {target} = @copy({between}{here}) in {box}")

    def text(self) -> str:
        """The program: buffers in order, then the number of steps."""
        self.cell()
        parts = [self.copies, self.main] if self.before else [self.main, self.copies]
        for part in parts:
            part()
        kind = f"!stencil.field<{'x'.join(f'[0,{n}]' for n in self.shape)}xf64>"
        given = ", ".join(f"%B{k}: {kind}" for k in range(self.buffers))
        made = [f"%S{k} = temporal.scratch : {one}" for k, one in enumerate(self.scratch)]
        pairs = [f"%b{k} = %B{k}" for k in range(self.buffers)]
        pairs += [f"%s{k} = %S{k}" for k in range(len(self.scratch))]
        order = [*range(1, self.buffers), 0, *range(self.buffers, len(pairs))]
        types = ", ".join([*(kind,) * self.buffers, *self.scratch])
        lines = [
            *self.functions,
            f"func.func @copied({given}, %n: index) {{",
            *made,
            f"temporal.loop %n ({', '.join(pairs)}) rotate {order} {{",
            *self.updates,
            f"}} : {types}",
            "func.return\n}",
        ]
        return "\n".join(lines)
