"""A function of the mathematical library on whole arrays, for the executor that computes with NumPy."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Attribute, Block

from timetile.lowering.cpu.builder import Builder
from timetile.lowering.cpu.convert_temporal_to_llvm import declared
from timetile.lowering.cpu.updates import POINTER, function_of
from timetile.passes.analysis.library import PREFIX

ELEMENTWISE = "elementwise"
"""The function of the module."""


def argument_kinds(operands: int) -> list[Attribute]:
    """The types of the arguments: the operands' first elements, the results', and how many there are."""
    return [*(POINTER for _ in range(operands + 1)), i64]


def elementwise(name: str, operands: int, kind: Attribute) -> ModuleOp:
    """A module with a loop that calls a library function on each element of contiguous arrays."""
    function, entry = function_of(ELEMENTWISE, argument_kinds(operands))
    build, (*sources, target, count) = Builder(entry), entry.args
    head, body, done = Block(arg_types=[i64]), Block(), Block()
    for block in (head, body, done):
        function.body.add_block(block)
    build.jump(head, build.int(0))
    place = head.args[0]
    build.block = head
    build.branch(build.compare("slt", place, count), body, done)
    build.block = body
    values = [build.loaded(build.moved(source, place, kind), kind) for source in sources]
    result = build.library(PREFIX + name, values, kind)
    build.store(result, build.moved(target, place, kind))
    build.jump(head, build.binary(llvm.AddOp, place, build.int(1)))
    build.block = done
    build.add(llvm.ReturnOp())
    return ModuleOp([*declared(build.callees), function])
