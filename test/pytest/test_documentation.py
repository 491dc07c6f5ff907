"""
The documented examples of every operation and attribute parse, verify, and contain the operation or
attribute.
"""

from __future__ import annotations

import inspect
import re

import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect, Operation, ParametrizedAttribute
from xdsl.parser import Parser

from timetile.lowering.universe import DIALECTS, PASSES

LOADED: dict[str, Dialect] = {name: factory() for name, factory in DIALECTS.items()}
OPERATIONS = [op for dialect in LOADED.values() for op in dialect.operations]
ATTRIBUTES = [
    attribute
    for dialect in LOADED.values()
    for attribute in dialect.attributes
    if issubclass(attribute, ParametrizedAttribute)
]

FIELD = "!stencil.field<[-1,9]xf64>"
PLANE = "!stencil.field<[-1,9]x[-1,9]xf64>"

CONTEXTS: dict[str, str] = {
    "temporal": """
        func.func @around(
            %n: index, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>) {
          EXAMPLE
          func.return
        }""",
    "temporal.round": """
        func.func @around(%a: f32) {
          EXAMPLE
          func.return
        }""",
    "temporal.update": f"""
        func.func @around(%n: index, %dt: f64, %A: {PLANE}, %B: {PLANE}) {{
          temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {{
            EXAMPLE
          }} : {PLANE}, {PLANE}
          func.return
        }}""",
    "temporal.gather": f"""
        func.func @around(%near: !stencil.field<[0,8]xf64>, %A: {PLANE},
            %i: !stencil.field<[0,8]xi64>, %j: !stencil.field<[0,8]xi64>) {{
          EXAMPLE
          func.return
        }}""",
    "tile": f"""
        tile.kernel @around(%src: {PLANE}, %dst: {PLANE}, %A: {PLANE})
            roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>]
            steps 1 stream 0 bounds <[0, 0], [8, 8]> {{
          %u = tile.load %src : !tile.queue<f64, lag 0>
          %h = tile.load halo %A : !tile.queue<f64, lag 1>
          EXAMPLE
        }}""",
    "tile.load": f"""
        tile.kernel @around(%src: {PLANE}, %A: {PLANE})
            roles [#tile.role<source 0>, #tile.role<halo 0>]
            steps 1 stream 0 bounds <[0, 0], [8, 8]> {{
          EXAMPLE
        }}""",
    "tile.kernel": "EXAMPLE",
    "temporal.sweep": f"""
        func.func @around(%r: f64, %c: {PLANE}, %d: {PLANE}, %u: {PLANE}) {{
          EXAMPLE func.return
        }}""",
    **dict.fromkeys(
        ("temporal.inject", "temporal.sample"),
        """func.func @around(%u: !stencil.field<[0,8]x[0,8]xf64>, %t: i64,
            %places: !stencil.field<[0,91]xi32>, %w: !stencil.field<[0,8]xf64>,
            %f: !stencil.field<[0,64]xf64>, %out: !stencil.field<[0,256]xf64>) {
            EXAMPLE func.return }""",
    ),
    "temporal.reduce": f"func.func @around(%u: {PLANE}) {{ EXAMPLE func.return }}",
    "tile.scratch": f"func.func @around(%A: {FIELD}) {{ EXAMPLE func.return }}",
    "tile.copy": f"func.func @around(%A: {FIELD}, %x: {FIELD}) {{ EXAMPLE func.return }}",
    "tile.step_value": """
        func.func @around(%series: memref<9xf64>, %step: index) { EXAMPLE func.return }""",
    "tile.launch": f"func.func @around(%A: {FIELD}, %B: {FIELD}) {{ EXAMPLE func.return }}",
    "simt": """
        func.func @around(%buffer: memref<64xf64, 1>, %i: i32, %m: i1, %v: f64, %warp: i32) {
          EXAMPLE
          func.return
        }""",
    "simt.fma_up": """
        func.func @around(%a: f32, %b: f32, %c: f32) {
          EXAMPLE
          func.return
        }""",
    "simt.store": """
        func.func @around(%buffer: memref<64xf64, 1>, %i: i32, %m: i1, %a: f64, %b: f64) {
          EXAMPLE
          func.return
        }""",
    "simt.override": """
        func.func @around(%buffer: memref<64xf64, 1>, %i: i32, %m: i1, %a: f64) {
          EXAMPLE
          func.return
        }""",
    "simt.copy_async": """
        func.func @around(
            %ring: memref<64xf64, 3>, %s: i32, %field: memref<64xf64, 1>, %i: i32, %m: i1) {
          EXAMPLE
          func.return
        }""",
    **dict.fromkeys(
        ("simt.expect", "simt.arrive", "simt.wait", "simt.peer"),
        """
        func.func @around(%p: i32, %n: i32, %rank: i32, %buffer: memref<512xf64, 3>) {
          %b = simt.shared at 0 : memref<1xi64, 3>
          EXAMPLE
          func.return
        }""",
    ),
    "simt.send": """
        func.func @around(%a: f64, %b: f64, %i: i32, %m: i1, %p: i32, %peer: memref<64xf64, 7>,
                          %w: memref<2xi64, 7>) {
          EXAMPLE
          func.return
        }""",
    "simt.post": """
        func.func @around(%a: f64, %b: f64, %buffer: memref<512xi64, 1>, %i: i32, %n: i32) {
          EXAMPLE
          func.return
        }""",
    **dict.fromkeys(
        ("simt.take", "simt.tile_barrier", "simt.launches_ended", "simt.end_launch"),
        """
        func.func @around(%buffer: memref<512xi64, 1>, %words: memref<8xi64, 1>, %i: i32, %n: i32) {
          EXAMPLE
          func.return
        }""",
    ),
    "simt.join": "func.func @around(%lo: i32, %hi: i32) { EXAMPLE func.return }",
    "nvvm": """
        func.func @around(%full: i32, %v: i32, %one: i32, %clamp: i32, %p: i1) {
          EXAMPLE
          func.return
        }""",
    **dict.fromkeys(
        (
            "nvvm.mbarrier.init.shared",
            "nvvm.mbarrier.arrive.shared",
            "nvvm.mbarrier.arrive.expect_tx.shared",
            "nvvm.mbarrier.try_wait.parity.shared",
        ),
        """
        func.func @around(%b: !llvm.ptr<3>, %count: i32, %bytes: i32, %p: i32, %t: i32) {
          EXAMPLE
          func.return
        }""",
    ),
    "nvvm.mapa": "func.func @around(%a: !llvm.ptr<3>, %rank: i32) { EXAMPLE func.return }",
    "nvvm.cp.async.shared.global": """
        func.func @around(%dst: !llvm.ptr<3>, %src: !llvm.ptr<1>) { EXAMPLE func.return }""",
}
"""The surroundings of an example, by operation, or by dialect for operations without an entry."""


def example_of(documented: type) -> str:
    """
    The example in the documentation of an operation or attribute: fenced, or between back quotes.
    """
    text = inspect.cleandoc(documented.__doc__ or "")
    found = re.search(r"Example:\s*(?:```\n(.*?)```|`([^`]+)`)", text, re.DOTALL)
    assert found is not None, f"the documentation of {documented.__name__} has no example"
    return found[1] or found[2]


def context() -> Context:
    """Our dialects, and upstream's."""
    context = Context()
    for name, factory in get_all_dialects().items():
        if name not in LOADED:
            context.register_dialect(name, factory)
    for dialect in LOADED.values():
        context.load_dialect(dialect)
    return context


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: op.name)
def test_an_example_of_an_operation_parses(operation: type[Operation]):
    around = CONTEXTS.get(operation.name) or CONTEXTS[operation.name.split(".")[0]]
    module = Parser(context(), around.replace("EXAMPLE", example_of(operation))).parse_module()
    assert isinstance(module, ModuleOp)
    found = [op for op in module.walk() if isinstance(op, operation)]
    assert found, f"the example of {operation.name} has no such operation"
    for op in found:
        op.verify()


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: attribute.name)
def test_an_example_of_an_attribute_parses(attribute: type[ParametrizedAttribute]):
    example = example_of(attribute)
    parsed = Parser(context(), example).parse_attribute()
    assert isinstance(parsed, attribute)
    parsed.verify()
    assert str(parsed) == " ".join(example.split())


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_shows_a_program_before_and_after(name: str):
    made = PASSES[name]()
    module = inspect.getdoc(inspect.getmodule(made)) or ""
    text = module + (inspect.getdoc(made) or "")
    assert re.search(r"\bBefore\b", text) and re.search(r"\bAfter\b", text)
