"""split-sums: a sum becomes a chain of stages: one plane each, two halves, or one column each.

Before (`form=rows`), a 9-point box:
`%u1 = tile.apply @cell(%u0[-1,-1], ..., %u0[1,1]) else %h1 : !tile.queue<f64, lag 1>`
After:
```
%p1 = tile.apply @cell_rows0(%u0[-1,-1], %u0[-1,0], %u0[-1,1])           : !tile.queue<f64, lag -1>
%s1 = tile.apply @cell_rows1(%p1[0,0], %u0[0,-1], %u0[0,0], %u0[0,1])    : !tile.queue<f64, lag 0>
%u1 = tile.apply @cell_rows2(%s1[0,0], %u0[1,-1], ...) else %h1          : !tile.queue<f64, lag 1>
```
Every plane is then tapped when it arrives and its cells are shuffled once; partial sums are kept
instead of planes (the scatter form). After `form=halves`, a star of radius 4 that is streamed along z:
```
%f = tile.apply @cell_halves0(%u0[-4,0,0], ..., %u0[-1,0,0])                     : !tile.queue<f64, lag -1>
%u1 = tile.apply @cell_halves1(%f[0,0,0], %u0[0,0,0], ..., %u0[4,0,0]) else %h1   : !tile.queue<f64, lag 4>
```
The planes before the cell's own enter its sum together when the last of them is there, the others when all
are (the semi-stencil: forward and backward halves): each half spans about half of the planes. After `form=lanes`, the
box again, if its body takes the columns one after the other:
```
%p1 = tile.apply @cell_lanes0(%u0[-1,0], %u0[0,0], %u0[1,0])             : !tile.queue<f64, lag 1>
%s1 = tile.apply @cell_lanes1(%p1[0,-1], %u0[-1,0], %u0[0,0], %u0[1,0])  : !tile.queue<f64, lag 1>
%t1 = tile.apply @cell_lanes2(%s1[0,-1], %u0[-1,0], %u0[0,0], %u0[1,0])  : !tile.queue<f64, lag 1>
%u1 = tile.apply @cell_lanes3(%t1[0,1]) else %h1                         : !tile.queue<f64, lag 1>
```
Partial sums travel along the row, from lane to lane, and each lane adds what it holds of its own column; what they end
as goes back to its cell. Only sums are shuffled, however many planes they take (SSAM, section 4).

A sum is cut only between terms whose order it keeps: the body must be a chain that takes the planes, the oldest ahead, or
the columns, the first ahead, one after the other. Others stay whole, with a remark; so do all sums of a kernel that streams
nothing, and for `form=lanes` those of one whose rows lie along the stream or are held by several warps.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolTable

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.taps import Tap
from timetile.dialects.tile import ApplyOp, KernelOp, queue_type
from timetile.dialects.tile_attributes import QueueType
from timetile.passes.analysis.lags import assign_lags
from timetile.passes.diagnostics import remark
from timetile.passes.multi_queue_buffering import schedule_of
from timetile.passes.schedule import Form

PARTS: dict[Form, str] = {"rows": "planes", "halves": "planes", "lanes": "columns"}
"""What a sum must take one after the other to be split."""


@dataclass
class Part:
    """The operations of the body that need the taps up to one plane, or column, and not those of earlier parts."""

    offset: int
    taps: list[int]
    operations: list[Operation]


def latest_plane(function: FuncOp, offsets: Sequence[int | None]) -> dict[SSAValue, int | None]:
    """
    For each value of the body: the largest offset that it depends on, of planes or of columns; None for what depends
    on no tap: constants, scalars, coordinates and all that is computed from those alone.
    """
    latest: dict[SSAValue, int | None] = dict(zip(function.body.block.args, offsets))
    for op in function.body.block.ops:
        known = [o for v in op.operands if (o := latest[v]) is not None]
        latest.update(dict.fromkeys(op.results, max(known) if known else None))
    return latest


def split_body(function: FuncOp, offsets: Sequence[int | None]) -> list[Part] | None:
    """
    The body in parts, the oldest plane first, where a single value passes from each part to the next;
    None where more does, or one that no queue can hold.
    """
    block = function.body.block
    latest = latest_plane(function, offsets)
    planes = sorted({o for o in offsets if o is not None})
    parts = [Part(o, [k for k, x in enumerate(offsets) if x == o], []) for o in planes]
    for op in block.ops:
        if isinstance(op, ReturnOp):
            continue
        at = latest[op.results[0]] if op.results else None
        if at is not None:
            parts[planes.index(at)].operations.append(op)
    for number in range(len(parts) - 1):
        crossing = crossing_values(block, latest, planes[number])
        if len(crossing) != 1 or crossing[0].type not in CELL_BYTES:
            return None
    return parts


def crossing_values(block: Block, latest: dict[SSAValue, int | None], plane: int) -> list[SSAValue]:
    """The values made of planes up to `plane` that operations on later planes use."""
    crossing: list[SSAValue] = []
    for op in block.ops:
        own = max((o for r in op.results if (o := latest[r]) is not None), default=None)
        if isinstance(op, ReturnOp):
            own = max(o for o in latest.values() if o is not None)
        if own is None or own <= plane:
            continue
        for operand in op.operands:
            at = latest[operand]
            if at is not None and at <= plane and operand not in crossing:
                crossing.append(operand)
    return crossing


def part_function(
    name: str,
    function: FuncOp,
    part: Part,
    fixed: Collection[Operation],
    incoming: SSAValue | None,
    result: SSAValue,
) -> FuncOp:
    """
    The function of one part: of the incoming partial sum and its taps. `fixed` are the operations that depend on no
    tap; the part has copies of those that it needs.
    """
    block = Block()
    own = {*part.operations, *fixed}
    mapping: dict[SSAValue, SSAValue] = {}
    body = function.body.block
    if incoming is not None:
        mapping[incoming] = block.insert_arg(incoming.type, 0)
    for k in part.taps:
        mapping[body.args[k]] = block.insert_arg(body.args[k].type, len(block.args))
    for op in body.ops:
        if op in own:
            block.add_op(op.clone(mapping))
    block.add_op(ReturnOp(mapping[result]))
    for op in reversed(list(block.ops)):
        if not isinstance(op, ReturnOp) and all(r.first_use is None for r in op.results):
            Rewriter.erase_op(op)
    return FuncOp(name, (block.arg_types, [result.type]), Region(block), visibility="private")


def part_of(offset: int, offsets: Sequence[int], form: Form) -> int:
    """The last plane of the part that takes a plane: the plane itself, or that of its half; or the column itself."""
    if form != "halves":
        return offset
    return max(other for other in offsets if (other < 0) == (offset < 0))


def cut_axis(kernel: KernelOp, form: Form) -> int:
    """The axis along which sums are cut, of a kernel that streams: that of the lanes, or that of the stream."""
    assert kernel.stream_axis is not None
    return kernel.rank - 1 if form == "lanes" else kernel.stream_axis


def one_warp_holds_rows(kernel: KernelOp) -> bool:
    """Lanes of one warp lie along the rows of a tile; without a layout, as far as is known."""
    return kernel.layout is None or kernel.layout.axis_layouts[-1].tile_warps == 1


def why_none(kernel: KernelOp, form: Form) -> str | None:
    """Why no sum of a kernel can be split; None where some may be."""
    if kernel.stream_axis is None:
        return (
            "nothing is streamed, and planes do not arrive one after the other; its sums stay whole"
        )
    if form == "lanes" and kernel.stream_axis == kernel.rank - 1:
        return "its rows lie along the stream, and no lanes along them; its sums stay whole; stream another axis"
    if form == "lanes" and not one_warp_holds_rows(kernel):
        return (
            "several warps hold a row, from one to the next of which no sum travels; its sums stay whole; give "
            "device-tiling one warp along the row"
        )
    return None


def can_split(apply: ApplyOp, form: Form) -> bool:
    """One result, no scalars or coordinates, and more than one part."""
    if len(apply.res) != 1 or apply.scalars or apply.index_axes:
        return False
    axis = cut_axis(apply.kernel, form)
    places = [tap.offset[axis] for tap in apply.tap_list]
    return len({part_of(place, places, form) for place in places}) > 1


Cuts = dict[tuple[str, Form, tuple[int, ...]], list[str]]
"""The names of the parts of a cell function, by how its taps are cut: every level has the same, and they are made once."""


def split_sum(apply: ApplyOp, module: ModuleOp, form: Form, cuts: Cuts) -> bool:
    """Replace an apply by a chain of stages; False where its body has another form."""
    axis = cut_axis(apply.kernel, form)
    function = SymbolTable.lookup_symbol(module, apply.cell)
    assert isinstance(function, FuncOp)
    taps = apply.tap_list
    # A tap of another queue at its own plane counts with the plane of the same offset.
    places = [tap.offset[axis] for tap in taps]
    offsets = [part_of(offset, places, form) for offset in places]
    parts = split_body(function, offsets)
    if parts is None:
        return False
    cut = (function.sym_name.data, form, tuple(offsets))
    known, names = cuts.get(cut), list[str]()
    latest = latest_plane(function, offsets)
    body = function.body.block
    fixed = [op for op in body.ops if op.results and latest[op.results[0]] is None]
    incoming: SSAValue | None = None
    partial: SSAValue | None = None
    stages: list[ApplyOp] = []
    # How far a travelling sum is from the cell that it is for.
    travelled = 0
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        before, travelled = travelled, part.offset if form == "lanes" else 0
        ends = last and travelled == 0
        terminator = body.last_op
        assert isinstance(terminator, ReturnOp)
        value = terminator.operands[0] if last else crossing_values(body, latest, part.offset)[0]
        if known is None:
            name = f"{function.sym_name.data}_{form}{number}"
            name = held(
                module, function, part_function(name, function, part, fixed, incoming, value)
            )
        else:
            name = known[number]
        names.append(name)
        queues = [*([] if partial is None else [partial]), *apply.queues]
        first = 0 if partial is None else 1
        tap_list = [] if partial is None else [Tap(0, along_row(apply, before - travelled))]
        tap_list += [
            Tap(taps[k].operand + first, moved_along_row(taps[k].offset, -travelled))
            for k in part.taps
        ]
        used = [k for k in range(len(queues)) if any(t.operand == k for t in tap_list)]
        stage = ApplyOp(
            name,
            [queues[k] for k in used],
            [Tap(used.index(t.operand), t.offset) for t in tap_list],
            apply.kernel.rank,
            [QueueType(value.type, 0)],
            apply.otherwise if ends else (),
            box=apply.box if ends else None,
        )
        stages.append(stage)
        incoming, partial = value, stage.res[0]
    if travelled:
        name = f"{function.sym_name.data}_{form}{len(parts)}"
        stages.append(returning(apply, module, function, name, stages[-1].res[0], travelled))
    cuts[cut] = names
    Rewriter.replace_op(apply, stages, [stages[-1].res[0]])
    return True


def held(module: ModuleOp, function: FuncOp, part: FuncOp) -> str:
    """
    The name by which a module has a part of a function: that of an equal part, if there is one. Stages that share a
    function may be cut differently.
    """
    name, number = part.sym_name.data, 0
    while (known := SymbolTable.lookup_symbol(module, part.sym_name)) is not None:
        if known.is_structurally_equivalent(part):
            return part.sym_name.data
        number += 1
        part.sym_name = StringAttr(f"{name}_{number}")
    module.body.block.insert_op_after(part, function)
    return part.sym_name.data


def moved_along_row(offset: Sequence[int], distance: int) -> tuple[int, ...]:
    """An offset, so many cells further along the row."""
    return (*offset[:-1], offset[-1] + distance)


def along_row(apply: ApplyOp, distance: int) -> tuple[int, ...]:
    """The offset of so many cells along the row."""
    return moved_along_row((0,) * apply.kernel.rank, distance)


def returning(
    apply: ApplyOp, module: ModuleOp, function: FuncOp, name: str, total: SSAValue, place: int
) -> ApplyOp:
    """The stage in which what a travelling sum ends as goes back to its cell, from so far along the row."""
    kind = queue_type(total).element
    block = Block(arg_types=[kind])
    block.add_op(ReturnOp(block.args[0]))
    made = FuncOp(name, ([kind], [kind]), Region(block), visibility="private")
    return ApplyOp(
        held(module, function, made),
        [total],
        [Tap(0, along_row(apply, place))],
        apply.kernel.rank,
        [QueueType(kind, 0)],
        apply.otherwise,
        box=apply.box,
    )


def split_kernel(kernel: KernelOp, module: ModuleOp, form: Form) -> bool:
    """Split all sums of a kernel; False where one cannot be, or none needs to be."""
    if why_none(kernel, form) is not None:
        return False
    stages = [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]
    cuts: Cuts = {}
    split = [can_split(stage, form) and split_sum(stage, module, form, cuts) for stage in stages]
    assign_lags(kernel)
    return bool(split) and all(split)


@dataclass(frozen=True)
class SplitSumsPass(ModulePass):
    """Split sums into stages; see the module's documentation."""

    name = "split-sums"

    form: Form | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        cuts: Cuts = {}
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            form = self.form or schedule_of(kernel, op).form
            if form == "none":
                continue
            if (why := why_none(kernel, form)) is not None:
                remark(kernel, why)
                continue
            for stage in kernel.stages:
                if not isinstance(stage, ApplyOp) or not can_split(stage, form):
                    continue
                if not split_sum(stage, op, form, cuts):
                    remark(
                        stage,
                        f"its sum does not take the {PARTS[form]} one after the other; it stays whole",
                    )
            assign_lags(kernel)
