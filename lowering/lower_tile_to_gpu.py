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
   (`passes/analysis/synchronisation.py`); warps that synchronise in two halves wait at the start of a step
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

from timetile.dialects.simt import CELL_BYTES, GLOBAL_SPACE, buffer_type
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, StageOp
from timetile.dialects.tile_attributes import SharedAttr
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.cells import CellFunction
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
from timetile.passes.analysis.geometry import Geometry
from timetile.passes.analysis.plane_geometry import FieldShape, ceil_div
from timetile.passes.analysis.synchronisation import (
    batches_keep,
    collect_orders,
    lives_in_ring,
    split_keeps,
    steps_between_barriers,
)
from timetile.passes.diagnostics import refuse

FARTHEST = 1 << 30
"""The largest coordinate of a field's cell: tiles begin before their fields and end beyond them, and 32 bits number all."""


def argument_types(kernel: KernelOp) -> list[Attribute]:
    """Fields become flat buffers in global memory, scalars stay."""
    types: list[Attribute] = []
    for argument, role in zip(kernel.body.block.args, kernel.roles):
        if role.role[0] == "scalar":
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


def check(kernel: KernelOp) -> None:
    """Refuse what the lowering cannot do, with a sentence."""
    if kernel.layout is None or kernel.variants is None or not kernel.is_placed:
        refuse(
            kernel,
            "it has no layout, homes or variants; run device-tiling, multi-queue-buffering and "
            "peel-boundaries first",
        )
    axes = kernel.layout.axis_layouts
    check_synchronisation(kernel)
    if any(axis.lanes > 1 for axis in axes[:-1]):
        refuse(kernel, "lanes are spread along the last axis only; give the others warps or cells")
    check_fields(kernel)
    check_columns(kernel)
    check_joined(kernel)


def check_fields(kernel: KernelOp) -> None:
    """Refuse fields of other numbers, or that reach farther along an axis than coordinates of 32 bits."""
    for argument, role in zip(kernel.body.block.args, kernel.roles):
        if role.role[0] == "scalar":
            continue
        if element_type(argument) not in CELL_BYTES:
            refuse(kernel, f"fields of {element_type(argument)} are not supported; use f32 or f64")
        shape = FieldShape.of(argument)
        for axis, (low, high) in enumerate(zip(shape.lower, shape.upper)):
            if max(-low, high) > FARTHEST:
                refuse(
                    kernel,
                    f"a field reaches from {low} to {high} along axis {axis}, and coordinates end at {FARTHEST}; cut "
                    "the domain into several",
                )


def check_columns(kernel: KernelOp) -> None:
    """Refuse variants that leave columns of tiles to nobody, or have more than there are."""
    assert kernel.variants is not None
    geometry = Geometry(kernel)
    for interior in (False, True):
        have = geometry.columns_of_kind(interior=interior)
        of_kind = [v for v in kernel.variants if v.is_interior == interior]
        given = sum(v.columns.data for v in of_kind)
        takes_rest = sum(v.columns.data == 0 for v in of_kind)
        if takes_rest > 1 or given > have or (given < have and not takes_rest):
            refuse(
                kernel,
                f"its variants name {given} of {have} columns of tiles {'inside' if interior else 'on'} the rim, and "
                f"{takes_rest} take the rest; let one take it",
            )


def check_joined(kernel: KernelOp) -> None:
    """Refuse joined planes of tiles that cannot go on in another column, and more than a column has."""
    assert kernel.layout is not None and kernel.variants is not None
    geometry = Geometry(kernel)
    if not geometry.joins_columns:
        return
    most = max(variant.joined.data for variant in kernel.variants)
    if most > geometry.planes:
        refuse(
            kernel,
            f"its variants join {most} planes of each column, which have {geometry.planes}; join no more",
        )
    if kernel.layout.warps * kernel.layout.blocks > 1 or kernel.stream_axis is None:
        refuse(
            kernel,
            "its variants join planes of columns, and only streamed tiles of one warp go on from one to the next; leave "
            "out joined, or give device-tiling tile=warp",
        )


def check_synchronisation(kernel: KernelOp) -> None:
    """Refuse exchanges whose warps would read too early, or overwrite what is still read."""
    assert kernel.layout is not None
    exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
    kinds = {e.home.sync.data for e in exchanges if e.home is not None}
    if kernel.stream_axis is None:
        check_what_stays(kernel, exchanges)
    if kernel.layout.blocks > 1:
        check_blocks(kernel, exchanges)
    if not kernel.layout.has_messages and kinds & {"flags", "grid"}:
        refuse(
            kernel,
            f"it has no blocks that exchange by {min(kinds & {'flags', 'grid'})}; use barrier, mbarrier, or "
            "tile=device and blocks",
        )
    if {"barrier", "mbarrier"} <= kinds:
        refuse(kernel, "some of its exchanges wait at a barrier, some at an mbarrier; use one")
    if kernel.stream_axis is None:
        return
    orders = collect_orders(kernel)
    if kinds and kinds <= {"mbarrier", "flags"} and not split_keeps(orders):
        refuse(
            kernel,
            "an mbarrier once a step does not order its accesses; use a barrier, or exchanges that "
            "are delayed by a step and have a slot more",
        )
    every = steps_between_barriers(messages(kernel))
    if "grid" in kinds and not batches_keep(orders, every):
        start = "a step" if every == 1 else f"one step in {every}"
        refuse(
            kernel,
            f"its blocks meet once, at the start of {start}, and it needs barriers elsewhere, too; delay its exchanges "
            f"by {every} or more",
        )


def check_what_stays(kernel: KernelOp, exchanges: Sequence[ExchangeOp]) -> None:
    """Refuse what a tile that stays cannot have."""
    assert kernel.layout is not None
    if any(exchange.publishes_copies for exchange in exchanges):
        refuse(
            kernel,
            "a tile that stays fetches nothing ahead that copies could serve; use what=plane",
        )
    if len(kernel.plane_axes) > 2 and any(e.what.data == "edges" for e in exchanges):
        refuse(kernel, "the edges of a volume are planes themselves; use what=plane")
    if kernel.layout.has_cluster:
        refuse(
            kernel,
            "the blocks of a cluster exchange a step of the stream late, and a tile that stays has none; use tile=device",
        )
    kept = [result for stage in kernel.stages for result in stage.results]
    if kernel.layout.blocks > 1 and any(map(lives_in_ring, kept)):
        refuse(
            kernel,
            "the blocks of a tile that stays keep their own cells in registers; use storage=registers",
        )


def check_blocks(kernel: KernelOp, exchanges: Sequence[ExchangeOp]) -> None:
    """Refuse what the blocks of a tile cannot exchange."""
    assert kernel.layout is not None
    first, *others = kernel.layout.axis_layouts
    if not others or any(axis.blocks > 1 for axis in others):
        refuse(kernel, "the blocks of a tile lie along the first of several in-plane axes")
    edges = any(exchange.what.data == "edges" for exchange in exchanges)
    if any(axis.warps > 1 for axis in others) and (edges or kernel.stream_axis is not None):
        refuse(
            kernel,
            "the warps of a tile of several blocks lie along its first axis; give the others cells, or let it stay and "
            "exchange whole planes (stream-axis=none, what=plane)",
        )
    for exchange in exchanges:
        if not exchange.publishes_copies and exchange.edges[0] > first.cells:
            refuse(
                kernel,
                f"its taps reach {exchange.edges[0]} cells along the blocks and a warp has {first.cells}; give it more",
            )
    sent = {e.home.sync.data for e in exchanges if e.home and not e.publishes_copies}
    whole = any(map(is_ring_of_tile, kernel.stages))
    streamed = kernel.layout.has_messages and kernel.stream_axis is not None
    if streamed and whole and sent != {"grid"}:
        refuse(
            kernel,
            "the blocks of its tile keep whole planes in shared memory, which they exchange at barriers of the grid; "
            "use register-streaming with sync=grid or what=edges",
        )
    if kernel.layout.has_cluster and (whole or "barrier" in sent):
        refuse(
            kernel,
            "the blocks of a tile exchange edges, a step late; use storage=registers and what=edges",
        )
    if kernel.layout.has_messages and sent & {"barrier", "mbarrier"}:
        refuse(
            kernel, "the blocks of a tile that the device holds exchange by flags or grid; use one"
        )


def is_ring_of_tile(stage: StageOp) -> bool:
    """Whole planes of a queue are written to shared memory for the tile's other warps."""
    if isinstance(stage, ExchangeOp):
        return stage.what.data == "plane"
    return isinstance(getattr(stage, "home", None), SharedAttr)


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
