"""The module around the code of a kernel that no tile makes: reductions, gathers, comparisons."""

from __future__ import annotations

from xdsl.dialects import gpu
from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.builtin import ModuleOp, StringAttr, i32
from xdsl.dialects.gpu import BlockIdOp, DimensionAttr, DimensionEnum, ThreadIdOp
from xdsl.ir import Block, Region, SSAValue

from timetile.dialects.tile import LaunchAttr
from timetile.lowering.emitter import Emitter
from timetile.lowering.launch_facts import set_launch_facts

ALONG = DimensionAttr(DimensionEnum.X)


def thread_of_block(emit: Emitter) -> SSAValue:
    """The number of the thread in its block, an i32."""
    return emit.add(IndexCastOp(emit.add(ThreadIdOp(ALONG)).result, i32)).result


def block_of_launch(emit: Emitter) -> SSAValue:
    """The number of the block in the launch, an i32."""
    return emit.add(IndexCastOp(emit.add(BlockIdOp(ALONG)).result, i32)).result


def module_of_kernel(name: str, entry: Block, grid: int, threads: int) -> ModuleOp:
    """
    A module with one kernel at the level of threads, from the code of a thread, and the facts of
    its launch. The blocks of a launch are `grid`, or what the launch asks for if 0.
    """
    entry.add_op(gpu.ReturnOp([]))
    function = gpu.FuncOp(
        name,
        (entry.arg_types, []),
        Region(entry),
        kernel=True,
        known_block_size=[threads, 1, 1],
    )
    module = gpu.ModuleOp.create(
        properties={"sym_name": StringAttr(name)}, regions=[Region(Block([function]))]
    )
    facts = LaunchAttr(
        steps=1, roles=[], grid=max(grid, 1), block=threads, shared_bytes=0, occupancy=1
    )
    set_launch_facts(module, facts)
    return ModuleOp([module])
