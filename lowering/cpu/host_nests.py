"""Loops of the host as functions of the llvm dialect: cells in the order of the program.

Before:
```
scf.for %k = %zero to %n step %one {
  %i = memref.load %places[%k] : memref<8xindex>
  %a = memref.load %u[%i] : memref<64xf64>
  %b = arith.addf %a, %s : f64
  memref.store %b, %u[%i] : memref<64xf64>
}
```
After, beside the loop:
```
llvm.func @nest0(%low: i64, %high: i64, %step: i64, %places: !llvm.ptr, %u: !llvm.ptr, %s: f64,
                 %results: !llvm.ptr, %status: !llvm.ptr)
```
1. The bounds of the loop, the carried values, and the values from outside are arguments; memory is
   a pointer to the first cell.
2. Loops and branches become blocks; operations of numbers have the bits of cells.
3. Before each access, indices are compared with the extents. For an index outside, the function
   notes access, axis and index in `%status`, and returns: the host refuses the program.
4. Sweeps of a time loop call the function of the sweep, on a single thread.
5. Carried values, and the fields of sweeps in the last step, go to `%results`, 8 bytes each.

`nest_rules.py` says which loops are compiled. The runtime calls a function with the host's values
(`runtime/native/nests.py`), and an interpreter runs all other loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm, memref, scf
from xdsl.dialects.builtin import MemRefType, i1, i8, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from timetile.dialects.cell_types import CELL_TYPES
from timetile.dialects.temporal import LoopOp
from timetile.lowering.cpu.builder import Builder, llvm_type
from timetile.lowering.cpu.cells import lower_operation
from timetile.lowering.cpu.given import Given, steps_name
from timetile.lowering.cpu.nest_rules import (
    PRODUCTS,
    SUMS,
    HostAccess,
    HostLoop,
    compiled_loops,
    host_operations,
    kind_number,
    turns_of,
)
from timetile.lowering.cpu.updates import POINTER, function_of
from timetile.passes.raising.memory import is_alias, is_memory

SLOT = 8
"""Bytes of a result."""

WAYS: list[Attribute] = [i64, i1, i64, i64]
"""The types of the arguments of a sweep's blocks: depth, together, rows, columns."""


def values_outside(loop: Operation) -> tuple[SSAValue, ...]:
    """The values from outside used inside a loop, each once, in order."""
    inner = list(host_operations(loop))
    used = [v for op in inner for v in op.operands]
    used += [v for op in inner if isinstance(op, LoopOp) for v in (*op.captures, *op.scalars)]
    own = {result for op in inner for result in op.results}
    own |= {arg for op in (loop, *inner) for r in op.regions for b in r.blocks for arg in b.args}
    return tuple(dict.fromkeys(value for value in used if value not in own))


class NestFunction:
    """
    Builds the function of a loop of the host. `numbers` are the numbers of the program's time loops
    and sweeps.
    """

    def __init__(self, nest: HostLoop, number: int, numbers: dict[LoopOp, int]):
        self.nest, self.name, self.numbers = nest, f"nest{number}", numbers
        self.rank = len(nest.lowerBound) if isinstance(nest, scf.ParallelOp) else 1
        self.carried = tuple(nest.iter_args) if isinstance(nest, scf.ForOp) else ()
        self.outside = values_outside(nest)
        self.sweeps = [op for op in nest.body.block.ops if isinstance(op, LoopOp)]
        self.accesses: list[HostAccess] = []
        """The accesses to memory; `%status` has the number of an access."""
        self.slots = len(self.carried) + sum(len(sweep.results) for sweep in self.sweeps)
        given = [type_of_value(value) for value in (*self.carried, *self.outside)]
        ways = WAYS * len(self.sweeps)
        self.kinds = [*[i64] * (3 * self.rank), *given, *ways, POINTER, POINTER]
        self.function, entry = function_of(self.name, self.kinds)
        self.build = Builder(self.function.body)
        bounds, rest = entry.args[: 3 * self.rank], entry.args[3 * self.rank :]
        self.ranges = [tuple(bounds[3 * k : 3 * k + 3]) for k in range(self.rank)]
        first = len(self.carried)
        self.begin = rest[:first]
        self.values: dict[SSAValue, SSAValue] = dict(zip(self.outside, rest[first:]))
        self.ways = rest[first + len(self.outside) : -2]
        self.results, self.status = rest[-2:]

    def make(self) -> llvm.FuncOp:
        """The whole function."""
        body = self.nest.body.block
        if isinstance(self.nest, scf.ParallelOp):
            self.parallel(self.ranges, body, [])
        else:
            ends = self.counted(self.ranges[0], body, self.begin)
            for number, value in enumerate(ends):
                self.put(number, value)
        self.build.add(llvm.ReturnOp())
        return self.function

    def slot(self, pointer: SSAValue, number: int) -> SSAValue:
        """The address of a number in an array of results."""
        return self.build.moved(pointer, self.build.int(SLOT * number), i8)

    def put(self, number: int, value: SSAValue) -> None:
        """Store a result."""
        self.build.store(value, self.slot(self.results, number))

    # Loops and branches.

    def counted(
        self, bounds: Sequence[SSAValue], body: Block, carried: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """A loop that counts upwards, with the carried values after the last turn."""

        def turn(counter: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.values.update(zip(body.args, [counter, *values]))
            return self.block(body)

        return self.build.loop(bounds[0], bounds[1], bounds[2], turn, carried)

    def parallel(
        self, ranges: Sequence[Sequence[SSAValue]], body: Block, places: list[SSAValue]
    ) -> None:
        """Emit a loop nest in row-major order."""
        if not ranges:
            self.values.update(zip(body.args, places))
            self.block(body)
            return

        def turn(counter: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.parallel(ranges[1:], body, [*places, counter])
            return values

        self.build.loop(ranges[0][0], ranges[0][1], ranges[0][2], turn)

    def choice(self, op: scf.IfOp) -> None:
        """Emit a branch; its results are arguments of the block behind."""
        build = self.build
        then, other = build.new_block(), build.new_block()
        after = build.new_block([llvm_type(value.type) for value in op.results])
        build.add(llvm.CondBrOp(self.values[op.cond], then, [], other, []))
        for block, region in ((then, op.true_region), (other, op.false_region)):
            build.block = block
            results = self.block(region.block) if region.blocks else []
            build.add(llvm.BrOp(after, *results))
        build.block = after
        self.values.update(zip(op.results, after.args))

    def block(self, block: Block) -> list[SSAValue]:
        """The operations of a block; the values of the terminator."""
        for op in block.ops:
            if isinstance(op, scf.YieldOp | scf.ReduceOp):
                return [self.values[value] for value in op.operands]
            self.operation(op)
        return []

    def operation(self, op: Operation) -> None:
        """Emit an operation of the host."""
        operands = [self.values[value] for value in op.operands]
        match op:
            case scf.ForOp():
                results = self.counted(operands[:3], op.body.block, operands[3:])
                self.values.update(zip(op.results, results))
            case scf.ParallelOp():
                rank = len(op.lowerBound)
                ranges = [operands[k : 3 * rank : rank] for k in range(rank)]
                self.parallel(ranges, op.body.block, [])
            case scf.IfOp():
                self.choice(op)
            case memref.LoadOp():
                kind = llvm_type(op.res.type)
                self.values[op.res] = self.build.loaded(self.cell(op, kind), kind)
            case memref.StoreOp():
                self.build.store(operands[0], self.cell(op, operands[0].type))
            case memref.AtomicRMWOp():
                self.change(op, operands[0])
            case LoopOp():
                self.sweep(op)
            case _ if is_alias(op):
                self.values[op.results[0]] = operands[0]
            case _:
                self.values[op.results[0]] = lower_operation(self.build, op, operands)

    # Memory.

    def cell(self, op: HostAccess, kind: Attribute) -> SSAValue:
        """The address of the cell of an access, after a look at the indices."""
        build, memory = self.build, op.memref.type
        assert isa(memory, MemRefType[Attribute])
        number = len(self.accesses)
        self.accesses.append(op)
        place = build.int(0)
        for axis, (name, extent) in enumerate(zip(op.indices, memory.get_shape())):
            index, size = self.values[name], build.int(extent)
            self.check(build.compare("ult", index, size), number, axis, index)
            place = build.plus(build.times(place, size), index)
        return build.moved(self.values[op.memref], place, kind)

    def check(self, inside: SSAValue, number: int, axis: int, index: SSAValue) -> None:
        """Return with a status for an index outside the extents."""
        build = self.build
        onward, outside = build.new_block(), build.new_block()
        build.add(llvm.CondBrOp(inside, onward, [], outside, []))
        build.block = outside
        for place, value in enumerate((build.int(number + 1), build.int(axis), index)):
            build.store(value, self.slot(self.status, place))
        build.add(llvm.ReturnOp())
        build.block = onward

    def change(self, op: memref.AtomicRMWOp, value: SSAValue) -> None:
        """Emit the change of a cell: by a sum, by a product, or to a new value."""
        build, kind, number = self.build, value.type, kind_number(op)
        address = self.cell(op, kind)
        old = build.loaded(address, kind)
        is_float = CELL_TYPES[kind].is_float
        new = value
        if number in SUMS:
            new = build.binary(llvm.FAddOp if is_float else llvm.AddOp, old, value)
        elif number in PRODUCTS:
            new = build.binary(llvm.FMulOp if is_float else llvm.MulOp, old, value)
        build.store(new, address)
        self.values[op.results[0]] = old

    def sweep(self, op: LoopOp) -> None:
        """Emit a sweep of one step, or an inner loop of sweeps, on a single thread."""
        build, number = self.build, self.sweeps.index(op)
        given, turns = Given.of(op), turns_of(op)
        names = [self.values[buffer] for buffer in op.buffers]
        others = [self.values[value] for value in (*given.captures, *given.scalars)]
        depth, *way = self.ways[len(WAYS) * number : len(WAYS) * (number + 1)]
        one, zero = build.int(1), build.int(0)
        team = (build.int(turns), depth, *way, zero, one, self.status)
        build.add(llvm.CallOp(steps_name(self.numbers[op]), *names, *others, *team))
        for _ in range(turns):
            names = [names[source] for source in op.rotation]
        first = len(self.carried) + sum(len(sweep.results) for sweep in self.sweeps[:number])
        for place, (result, name) in enumerate(zip(op.results, names)):
            self.values[result] = name
            self.put(first + place, name)


def type_of_value(value: SSAValue) -> Attribute:
    """How compiled code takes a value of the host."""
    return POINTER if is_memory(value.type) else llvm_type(value.type)


def nest_functions(root: Operation, loops: Sequence[LoopOp]) -> list[NestFunction]:
    """
    The functions of the host's loops that become machine code. `loops` are the time loops and
    sweeps, in the order of their functions.
    """
    numbers = {loop: number for number, loop in enumerate(loops)}
    found = [NestFunction(op, k, numbers) for k, op in enumerate(compiled_loops(root))]
    for nest in found:
        nest.make()
    return found
