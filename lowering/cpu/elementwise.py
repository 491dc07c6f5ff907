"""
A function of the mathematical library on whole arrays, for the NumPy executor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Attribute, SSAValue

from timetile.lowering.cpu.builder import Builder
from timetile.lowering.cpu.convert_temporal_to_llvm import declared
from timetile.lowering.cpu.updates import POINTER, function_of
from timetile.passes.analysis.cells.library import PREFIX

Compute = Callable[[Builder, Sequence[SSAValue]], SSAValue]
"""Appends the computation of an element from an element of each operand; returns the result."""

ELEMENTWISE = "elementwise"
"""The name of the function in a module for a library function."""


def argument_kinds(operands: int) -> list[Attribute]:
    """
    The types of the arguments: pointers to operands and results, and the number of elements.
    """
    return [*(POINTER for _ in range(operands + 1)), i64]


def elementwise_functions(
    name: str, operands: Sequence[Attribute], result: Attribute, compute: Compute
) -> list[llvm.FuncOp]:
    """
    A function computing every element of a contiguous array, with declarations of the library
    functions called.
    """
    function, entry = function_of(name, argument_kinds(len(operands)))
    build, (*sources, target, count) = Builder(function.body), entry.args

    def element(place: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        values = [
            build.loaded(build.moved(source, place, kind), kind)
            for source, kind in zip(sources, operands)
        ]
        build.store(compute(build, values), build.moved(target, place, result))
        return carried

    build.loop(build.int(0), count, build.int(1), element)
    build.add(llvm.ReturnOp())
    return [*declared(build.callees), function]


def library_module(name: str, operands: int, kind: Attribute) -> ModuleOp:
    """A module with a loop calling a library function on each element."""

    def call(build: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return build.library(PREFIX + name, values, kind)

    return ModuleOp(elementwise_functions(ELEMENTWISE, [kind] * operands, kind, call))
