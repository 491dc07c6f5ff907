"""Real MLIR reads our nvvm-level IR: printed in generic form, every kernel of the table parses."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

import timetile
from support.catalogue import CATALOGUE, Entry, entry
from support.programs import program_text
from support.schedules import Schedule, block_plane, warp_row
from support.sizes import spread
from timetile.dialects.tile import Storage
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming

pytestmark = pytest.mark.usefixtures("chosen_by_model")

# MLIR's bindings have no types.
ir: Any = import_module("iree.compiler.ir")


def generic(module: ModuleOp) -> str:
    """The module in MLIR's generic form."""
    text = StringIO()
    Printer(text, print_generic_format=True).print_op(module)
    return text.getvalue()


def operations_in_mlir(text: str) -> Counter[str]:
    """Parse and verify with MLIR, and count the found operations by name."""
    with ir.Context() as context:
        # timetile's own operations are few: accesses with a mask, and helpers of the accesses.
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        count: Counter[str] = Counter()

        def visit(op: Any) -> Any:
            count[op.name] += 1
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        return count


def check(text: str, passes: Schedule | None, depth: int) -> Counter[str]:
    """MLIR reads all kernels of a program at hardware level; returns the operations."""
    compiled = timetile.compile(
        text,
        executor="simt",
        depth=depth,
        passes=None if passes is None else passes.passes(depth),
        cache=False,
    )
    total: Counter[str] = Counter()
    for fact in (fact for loop in compiled.kernels.facts for fact in loop):
        module = compiled.kernels.hardware(fact.name)
        found = operations_in_mlir(generic(module))
        assert found == Counter(op.name for op in module.walk())
        total += found
    return total


@pytest.mark.parametrize("case", spread(CATALOGUE), ids=lambda case: case.name)
def test_mlir_reads_every_program(case: Entry):
    check(program_text(case.make(case.domains[0])), None, 2)


SCHEDULES = [
    Schedule("copies-and-shuffles", warp_row(), Buffering(ahead=3)),
    Schedule("warp-syncs", warp_row(), Buffering(storage=Storage.SHARED), streaming=None),
    Schedule("barriers", block_plane((3, 2), (4, 1)), streaming=Streaming(delay=1)),
]
OPERATIONS = [
    "nvvm.read.ptx.sreg.tid.x",
    "nvvm.read.ptx.sreg.ctaid.x",
    "nvvm.redux.sync",
    "nvvm.vote.sync",
    "nvvm.shfl.sync",
    "nvvm.cp.async.shared.global",
    "nvvm.cp.async.commit.group",
    "nvvm.cp.async.wait.group",
    "nvvm.bar.warp.sync",
    "nvvm.barrier",
]


def test_all_our_nvvm_operations_are_mlirs_own():
    """Each operation is used by some schedule, and known to MLIR: MLIR checks the operation."""
    used: Counter[str] = Counter()
    for schedule in SCHEDULES:
        volume = len(schedule.tiling.cells or ()) == 2
        name, domain = ("heat-3d", (16, 40, 40)) if volume else ("heat-2d", (16, 300))
        used += check(program_text(entry(name).make(domain)), schedule, 2)
    used += check(program_text(entry("roots-2d").make((16, 300))), None, 2)
    mirrored = {name for name in used if name.startswith("nvvm.")}
    assert mirrored == set(OPERATIONS)
    with ir.Context() as context:
        context.load_all_available_dialects()
        assert [name for name in OPERATIONS if not context.is_registered_operation(name)] == []
