"""lower-tile-to-gpu: from placed kernels to the code of one thread.

Before: `tile.kernel @heat_d2(...) ... { tile.load, tile.apply, tile.store }`
After:
```
gpu.module @heat_d2 {
  gpu.func @heat_d2(%src: memref<4356xf64, 1 : i64>, ...) kernel
      attributes {gpu.known_block_size, ...} {
    thread and block numbers -> tile, chunk of planes, own cells, masks
    scf.if %interior {
      scf.for %i = ... step 2 iter_args(two planes of every queue) { shuffles, fused multiply-adds }
    } else { the same, guarded }
    gpu.return
  }
}
```
1. Every thread finds its tile, its chunk of planes and its own cells.
2. For each variant the stages are expanded into scalars: a queue in registers is a list of planes
   with new names in every step, neighbours are shuffled once, and cells outside the bounds are
   predicated loads or selects (`tile_to_gpu/halos.py`).
3. Barriers follow from the accesses to shared planes (`passes/analysis/queues/synchronisation.py`).
   Warps with synchronisation in two halves wait at the start of a step and arrive at the end;
   `order-threads` moves the arrival.

The attribute `tile.launch = #tile.launch<...>` of the module says how to launch the kernel. The
function's arguments keep the kernel's order. For a tile held by several blocks of the device, two
more arguments follow: the words for messages of all tiles of the launch, and the number of these
tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr, i32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass

from timetile.dialects.simt import GLOBAL_SPACE, buffer_type
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import ApplyOp, KernelOp, LaunchAttr
from timetile.lowering.emitter import OVER_TILES, ROLLED, Emitter
from timetile.lowering.launch_facts import set_launch_facts
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.tile_to_gpu.checks import check
from timetile.lowering.tile_to_gpu.chunks import (
    Chunk,
    Stretch,
    chunk_of,
    place_chunk,
    place_stretch,
)
from timetile.lowering.tile_to_gpu.code import KernelCode
from timetile.lowering.tile_to_gpu.loops import (
    emit_both_variants,
    emit_variant,
    is_cell_by_cell,
)
from timetile.lowering.tile_to_gpu.message_buffers import launch_words, messages, tile_words
from timetile.lowering.tile_to_gpu.placement import place_queues
from timetile.lowering.tile_to_gpu.point_cuts import chunk_around_points
from timetile.lowering.tile_to_gpu.point_spots import chunk_beside_spot
from timetile.lowering.tile_to_gpu.shared_memory import asked_bytes, check_shared_memory
from timetile.lowering.tile_to_gpu.thread import (
    ThreadSeat,
    Turn,
    chunk_steps,
    is_interior,
    place_thread,
    take_seat,
    tile_of_block,
)
from timetile.passes.analysis.block_memory import BlockMemory
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape
from timetile.passes.analysis.placed import variants_of
from timetile.passes.not_raised import remark_without_loops
from timetile.passes.targets.target import Target, target_of


def argument_types(kernel: KernelOp) -> list[Attribute]:
    """Fields become flat buffers in global memory, scalars stay."""
    types: list[Attribute] = []
    for argument, role in zip(kernel.body.block.args, kernel.roles):
        if role.kind.data.is_number:
            types.append(argument.type)
        else:
            cells = FieldShape.of(argument).cells
            types.append(buffer_type(element_type(argument), cells, GLOBAL_SPACE))
    return types


def message_types(kernel: KernelOp, tiles: int) -> list[Attribute]:
    """
    The types of two arguments of a kernel whose blocks exchange through global memory: the message
    buffers of all resident tiles, and the number of resident tiles.
    """
    if not messages(kernel):
        return []
    words = launch_words(tiles, tile_words(kernel))
    return [buffer_type(i64, words, GLOBAL_SPACE), i32]


def functions_of(kernel: KernelOp, module: ModuleOp) -> dict[str, CellFunction]:
    """The cell functions of a kernel's stages, by name."""
    applies = [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]
    return {
        stage.cell.string_value(): CellFunction(cell_function(module, stage)) for stage in applies
    }


def lower_kernel(kernel: KernelOp, module: ModuleOp, *, adjacent: bool) -> gpu.ModuleOp:
    """The gpu.module of one kernel; `adjacent` as for `BlockMemory`."""
    check(kernel)
    geometry = Geometry(kernel)
    memory = BlockMemory.of(geometry, adjacent=adjacent)
    check_shared_memory(kernel, memory.bytes, target_of(module))
    fields = kernel.body.block.args
    entry = Block(arg_types=[*argument_types(kernel), *message_types(kernel, geometry.tiles)])
    for old, new in zip(fields, entry.args):
        new.name_hint = old.name_hint
    emit_kernel(entry, geometry, memory, module)
    entry.add_op(gpu.ReturnOp([]))
    return made_module(kernel, geometry, entry, memory.bytes, target_of(module))


def emit_kernel(entry: Block, geometry: Geometry, memory: BlockMemory, module: ModuleOp) -> None:
    """Emit the code of a thread: loops over tiles and columns, and the variants."""
    kernel = geometry.kernel
    arguments: dict[SSAValue, SSAValue] = dict(zip(kernel.body.block.args, entry.args))
    emit, turn = Emitter(entry), None
    # Threads that read memory find their tile before they load anything.
    emit.by_products = kernel.reads_memory
    if messages(kernel):
        buffer, together = entry.args[-2:]
        emit, turn = next_tiles(emit, geometry, buffer, together)
    seat = take_seat(emit, geometry, turn)
    if geometry.joins_columns:
        stretch = place_stretch(emit, geometry, seat.tile)
        emit, seat, chunk = next_columns(emit, geometry, seat, stretch)
    else:
        chunk = place_chunk(emit, geometry, seat.tile)
    chunk = chunk_around_points(emit, geometry, arguments, chunk)
    if geometry.spot_tiles:
        seat, chunk = chunk_beside_spot(emit, geometry, arguments, seat, chunk)
    thread = place_thread(emit, geometry, seat, chunk)
    placement = place_queues(emit, geometry, memory, thread, arguments)
    functions = functions_of(kernel, module)
    code = KernelCode.of(geometry, thread, arguments, functions, placement)
    if geometry.tiles_in_turn > 1:
        emit_in_turn(emit, code)
    else:
        emit_variants(code, emit)
    if thread.steps_before is not None:
        steps = chunk_steps(emit, geometry, thread.first, thread.last)
        emit.add(scf.YieldOp(emit.binary(arith.AddiOp, thread.steps_before, steps)))
    elif geometry.joins_columns:
        emit.add(scf.YieldOp())


def emit_in_turn(emit: Emitter, code: KernelCode) -> None:
    """
    Emit the variants in a loop over tiles along the first axis: planes around a tile were read for
    the tile before, and lie in the first-level cache. A rolled loop holds no cells of two tiles.
    """
    tiling, place = code.geometry.axes[0], code.thread.axes[0]
    extent, turn = tiling.useful, code.geometry.tiles_in_turn
    end = emit.int(turn * extent)
    if tiling.count % turn:
        origin = emit.sub_int(place.coordinate, place.in_tile)
        left = emit.sub_int(emit.int(tiling.origin + tiling.count * extent), origin)
        end = emit.binary(arith.MinSIOp, left, end)
    block = Block(arg_types=[i32])
    loop = emit.add(scf.ForOp(emit.int(0), end, emit.int(extent), [], block))
    loop.attributes |= {ROLLED: UnitAttr(), OVER_TILES: UnitAttr()}
    emit = emit.into(block)
    axes = place.further(emit, block.args[0]), *code.thread.axes[1:]
    emit_variants(replace(code, thread=replace(code.thread, axes=axes)), emit)
    emit.add(scf.YieldOp())


def next_tiles(
    emit: Emitter, geometry: Geometry, buffer: SSAValue, together: SSAValue
) -> tuple[Emitter, Turn]:
    """
    A loop over the tiles of a block, one after the other. Blocks of a tile wait for each other by
    messages in a buffer, and so no more than the `together` resident tiles are launched.
    """
    layout = geometry.layout
    loop = Block(arg_types=[i32, i32])
    first_tile = tile_of_block(emit, layout)
    emit.add(scf.ForOp(first_tile, emit.int(geometry.tiles), together, [emit.int(0)], loop))
    tile, steps_before = loop.args
    return emit.into(loop), Turn(first_tile, tile, steps_before, buffer)


def next_columns(
    emit: Emitter, geometry: Geometry, seat: ThreadSeat, stretch: Stretch
) -> tuple[Emitter, ThreadSeat, Chunk]:
    """A loop over the columns of a tile's stretch. A chunk begins anew in each column."""
    loop = Block(arg_types=[i32])
    end = stretch.columns_end
    if seat.valid is not None:
        end, seat = emit.select(seat.valid, end, stretch.column), replace(seat, valid=None)
    emit.add(scf.ForOp(stretch.column, end, emit.int(1), [], loop))
    emit = emit.into(loop)
    return emit, seat, chunk_of(emit, geometry, stretch, loop.args[0])


def emit_variants(code: KernelCode, emit: Emitter) -> None:
    """
    Emit the variants of a kernel. Tiles inside the rim run the variant without guards, if the
    kernel has one.
    """
    thread, kernel = code.thread, code.kernel
    inside = emit if thread.valid is None else emit.into(Block())
    has_interior = any(variant.is_interior for variant in variants_of(kernel))
    unguarded = is_interior(inside, code.geometry, thread) if has_interior else None
    if unguarded is None:
        emit_guarded(code, inside)
    elif not emit_both_variants(code, inside, unguarded):
        interior, rim = Block(), Block()
        emit_inside(code, inside.into(interior))
        emit_guarded(code, inside.into(rim))
        for branch in (interior, rim):
            branch.add_op(scf.YieldOp())
        inside.add(scf.IfOp(unguarded, [], [interior], [rim]))
    if thread.valid is not None:
        inside.add(scf.YieldOp())
        emit.add(scf.IfOp(thread.valid, [], [inside.block]))


def emit_inside(code: KernelCode, emit: Emitter) -> None:
    """
    Emit the variant without guards. Where rows end between threads, threads beyond the ends skip
    it: with a mask for each access, the assembler makes branches of loads and holds them back.
    """
    in_rows = has_columns(emit, code) if code.geometry.rows_end_between_threads else None
    if in_rows is None:
        emit_variant(code, emit, guarded=False)
        return
    block = Block()
    emit_variant(code, emit.into(block), guarded=False)
    block.add_op(scf.YieldOp())
    emit.add(scf.IfOp(in_rows, [], [block]))


def has_columns(emit: Emitter, code: KernelCode) -> SSAValue | None:
    """The thread has columns in the bounds, where all or none of its columns are; None if sure."""
    tiling, place = code.geometry.axes[-1], code.thread.axes[-1]
    low, high = code.geometry.lower[tiling.axis], code.geometry.upper[tiling.axis]
    if low <= tiling.origin and tiling.last_origin + tiling.layout.extent <= high:
        return None
    return emit.compare("ult", emit.add_int(place.coordinate, -low), high - low)


def emit_guarded(code: KernelCode, emit: Emitter) -> None:
    """
    Emit the variant with guards. Where threads read memory, cells run one after the other in loops:
    guards of several cells take too many registers, and few tiles run them.
    """
    if not is_cell_by_cell(code):
        emit_variant(code, emit, guarded=True)
        return
    blocks: list[Block] = []
    axes = list(code.thread.axes)
    for number, place in enumerate(axes):
        if place.cells == 1:
            continue
        block = Block(arg_types=[i32])
        emit.add(scf.ForOp(emit.int(0), emit.int(place.cells), emit.int(1), [], block))
        emit = emit.into(block)
        axes[number] = place.moved(emit, block.args[0])
        blocks.append(block)
    thread = replace(code.thread, axes=tuple(axes))
    emit_variant(replace(code, thread=thread, rows=[code.rows[0]], cells=1), emit, guarded=True)
    for block in blocks:
        block.add_op(scf.YieldOp())


def made_module(
    kernel: KernelOp, geometry: Geometry, entry: Block, taken: int, target: Target
) -> gpu.ModuleOp:
    """
    The gpu.module around a kernel's code, whose blocks use `taken` bytes of shared memory. The
    launch facts are an attribute.
    """
    layout, name = geometry.layout, kernel.sym_name.data
    function = gpu.FuncOp(
        name,
        (entry.arg_types, []),
        Region(entry),
        kernel=True,
        known_block_size=[layout.threads, 1, 1],
    )
    lowered = gpu.ModuleOp.create(
        properties={"sym_name": StringAttr(name)}, regions=[Region(Block([function]))]
    )
    exchanges = bool(messages(kernel))
    facts = LaunchAttr(
        steps=kernel.steps.data,
        roles=kernel.roles.data,
        grid=geometry.blocks,
        block=layout.threads,
        shared_bytes=asked_bytes(kernel, taken, target),
        occupancy=kernel.blocks_per_multiprocessor,
        cluster=layout.blocks if layout.has_cluster else 1,
        blocks_per_tile=layout.blocks if exchanges else 1,
        message_words=tile_words(kernel) if exchanges else 0,
    )
    set_launch_facts(lowered, facts)
    return lowered


def lower_module(module: ModuleOp, kernels: Sequence[KernelOp], *, adjacent: bool = False) -> None:
    """Replace each kernel by a gpu.module; `adjacent` as for `BlockMemory`."""
    for kernel in kernels:
        lowered = lower_kernel(kernel, module, adjacent=adjacent)
        module.body.block.insert_op_before(lowered, kernel)
        kernel.detach()
        kernel.erase()


@dataclass(frozen=True)
class LowerTileToGpuPass(ModulePass):
    """Lower every placed kernel; see the module's documentation."""

    name = "lower-tile-to-gpu"

    adjacent: bool = False
    """Whether a warp's parts of shared memory are adjacent: fewer registers hold their places."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, "raise-time-loop,device-tiling")
        kernels = [kernel for kernel in op.ops if isinstance(kernel, KernelOp)]
        lower_module(op, kernels, adjacent=self.adjacent)
