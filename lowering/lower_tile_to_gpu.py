"""lower-tile-to-gpu: from placed kernels to the code of one thread.

Before: `tile.kernel @heat_d2(...) ... { tile.load, tile.apply, tile.store }`
After:
```
gpu.module @heat_d2 {
  gpu.func @heat_d2(%src: memref<4356xf64, 1 : i64>, ...) kernel attributes {gpu.known_block_size, ...} {
    thread and block numbers -> tile, chunk of planes, own cells, masks
    scf.if %interior {
      scf.for %i = ... step 2 iter_args(two planes of every queue) { shuffles, fused multiply-adds }
    } else { the same, guarded }
    gpu.return
  }
}
```
1. Every thread finds its tile, its chunk of planes and its own cells.
2. For each variant the stages are expanded into scalars: a queue in registers is a list of planes that
   age by renaming, its neighbours are shuffled once, halos are predicated loads at the reader.
3. Barriers are derived from what shared planes are read and when
   (`passes/analysis/queues/synchronisation.py`); warps that synchronise in two halves wait at the start of a step
   and arrive at its end, which `order-threads` moves.

The module's attributes state how to launch it: `timetile.grid`, `timetile.block`, `timetile.cluster`,
`timetile.shared_bytes`, `timetile.occupancy`; the function's arguments keep the kernel's order. Where the
device holds a tile, `timetile.apart` is how many blocks do and must be resident together,
`timetile.message_words` how many 64-bit words, 0 before the launch, they need to exchange edges. Only as
many tiles as are resident are then launched, and their blocks take others when they are done: two more
arguments follow, those words for all tiles of the launch, and their number. `timetile.grid` counts the
blocks of all tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable

from timetile.dialects.simt import GLOBAL_SPACE, buffer_type
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import ApplyOp, KernelOp, RoleKind
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.tile_to_gpu.checks import check, check_shared_memory
from timetile.lowering.tile_to_gpu.chunks import (
    chunk_of,
    place_chunk,
    place_stretch,
)
from timetile.lowering.tile_to_gpu.inboxes import launch_words, messages, tile_words
from timetile.lowering.tile_to_gpu.placement import place
from timetile.lowering.tile_to_gpu.stages import VariantEmitter
from timetile.lowering.tile_to_gpu.thread import (
    Turn,
    chunk_steps,
    is_interior,
    place_thread,
    take_seat,
    tile_of_block,
)
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape, ceil_div
from timetile.passes.diagnostics import refuse
from timetile.passes.targets.target import target_of


def argument_types(kernel: KernelOp) -> list[Attribute]:
    """Fields become flat buffers in global memory, scalars stay."""
    types: list[Attribute] = []
    for argument, role in zip(kernel.body.block.args, kernel.roles):
        if role.kind.data is RoleKind.SCALAR:
            types.append(argument.type)
        else:
            cells = FieldShape.of(argument).cells
            types.append(buffer_type(element_type(argument), cells, GLOBAL_SPACE))
    return types


def message_types(kernel: KernelOp, tiles: int) -> list[Attribute]:
    """
    Where the blocks of a tile exchange through global memory: the inboxes of all tiles that are held at
    once, and how many those are.
    """
    assert kernel.layout is not None
    if not messages(kernel):
        return []
    words = launch_words(tiles, tile_words(kernel))
    return [buffer_type(i64, words, GLOBAL_SPACE), i32]


def functions_of(kernel: KernelOp, module: ModuleOp) -> dict[str, CellFunction]:
    """The cell functions that a kernel's stages apply."""
    functions: dict[str, CellFunction] = {}
    for stage in kernel.stages:
        if isinstance(stage, ApplyOp):
            function = SymbolTable.lookup_symbol(module, stage.cell)
            if not isinstance(function, FuncOp):
                refuse(stage, f"its cell function {stage.cell} is not in the module")
            functions[stage.cell.string_value()] = CellFunction(function)
    return functions


def lower_kernel(kernel: KernelOp, module: ModuleOp) -> gpu.ModuleOp:
    """The gpu.module of one kernel."""
    check(kernel)
    assert kernel.layout is not None
    assert kernel.variants is not None
    name = kernel.sym_name.data
    types = argument_types(kernel)
    geometry = Geometry(kernel)
    tiles = geometry.tiles
    own = message_types(kernel, tiles)
    types += own
    entry = Block(arg_types=types)
    inboxes, together = entry.args[-2:] if own else (None, None)
    arguments: dict[SSAValue, SSAValue] = dict(zip(kernel.body.block.args, entry.args))
    for old, new in arguments.items():
        new.name_hint = old.name_hint
    emit, turn = Emitter(entry), None
    if together is not None:
        # Blocks wait for each other, so that only as many are launched as are resident.
        loop = Block(arg_types=[i32, i32])
        held = tile_of_block(emit, kernel.layout)
        bounds = (held, emit.int(tiles), together)
        emit.add(scf.ForOp(*bounds, [emit.int(0)], loop))
        emit, turn = emit.into(loop), Turn(held, *loop.args)
    seat = take_seat(emit, geometry, turn)
    if geometry.joins_columns:
        # A chunk that goes on in the next column begins anew there.
        stretch, loop = place_stretch(emit, geometry, seat.tile), Block(arg_types=[i32])
        end = stretch.columns_end
        if seat.valid is not None:
            end, seat = emit.select(seat.valid, end, stretch.column), replace(seat, valid=None)
        emit.add(scf.ForOp(stretch.column, end, emit.int(1), [], loop))
        emit = emit.into(loop)
        chunk = chunk_of(emit, geometry, stretch, loop.args[0])
    else:
        chunk = place_chunk(emit, geometry, seat.tile)
    outer = emit.block
    thread = place_thread(emit, geometry, seat, chunk)
    placement = place(emit, geometry, thread, arguments, inboxes)
    check_shared_memory(kernel, placement.shared_bytes, target_of(module))
    functions = functions_of(kernel, module)

    def variant(*, guarded: bool) -> Block:
        block = Block()
        VariantEmitter(
            block, emit, geometry, thread, arguments, functions, placement, guarded=guarded
        ).emit()
        block.add_op(scf.YieldOp())
        return block

    body = Block() if thread.valid is not None else outer
    inside = emit.into(body)
    has_interior = any(variant.is_interior for variant in kernel.variants)
    unguarded = is_interior(inside, geometry, thread) if has_interior else None
    if unguarded is None:
        for op in [*(guarded := variant(guarded=True)).ops][:-1]:
            op.detach()
            body.add_op(op)
        assert guarded.last_op is not None
        guarded.last_op.detach()
    else:
        inside.add(scf.IfOp(unguarded, [], [variant(guarded=False)], [variant(guarded=True)]))
    if thread.valid is not None:
        body.add_op(scf.YieldOp())
        emit.add(scf.IfOp(thread.valid, [], [body]))
    if thread.said is not None:
        steps = chunk_steps(emit, geometry, thread.first, thread.last)
        emit.add(scf.YieldOp(emit.binary(arith.AddiOp, thread.said, steps)))
    elif geometry.joins_columns:
        emit.add(scf.YieldOp())
    entry.add_op(gpu.ReturnOp([]))
    function = gpu.FuncOp(
        name,
        (types, []),
        Region(entry),
        kernel=True,
        known_block_size=[kernel.layout.threads, 1, 1],
    )
    lowered = gpu.ModuleOp.create(
        properties={"sym_name": StringAttr(name)}, regions=[Region(Block([function]))]
    )
    launch = {
        "grid": ceil_div(tiles, kernel.layout.pack.data) * kernel.layout.blocks,
        "block": kernel.layout.threads,
        "cluster": kernel.layout.blocks if kernel.layout.has_cluster else 1,
        "apart": kernel.layout.blocks if own else 1,
        "message_words": tile_words(kernel) if own else 0,
        "shared_bytes": placement.shared_bytes,
        "occupancy": kernel.blocks_per_multiprocessor,
    }
    for key, value in launch.items():
        lowered.attributes[f"timetile.{key}"] = IntegerAttr(value, i64)
    lowered.attributes["timetile.roles"] = kernel.roles
    lowered.attributes["timetile.steps"] = IntegerAttr(kernel.steps.data, i64)
    return lowered


def lower_module(module: ModuleOp, kernels: Sequence[KernelOp]) -> None:
    """Replace kernels by their gpu modules."""
    for kernel in kernels:
        lowered = lower_kernel(kernel, module)
        module.body.block.insert_op_before(lowered, kernel)
        kernel.detach()
        kernel.erase()


class LowerTileToGpuPass(ModulePass):
    """Lower every placed kernel; see the module's documentation."""

    name = "lower-tile-to-gpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_module(op, [kernel for kernel in op.ops if isinstance(kernel, KernelOp)])
