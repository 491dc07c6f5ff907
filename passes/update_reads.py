"""Rewrites of what an update reads, shared by several passes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from timetile.dialects.taps import Tap
from timetile.dialects.temporal import UpdateOp
from timetile.dialects.temporal.boundary import BoundaryAttr, keeping
from timetile.passes.rewriting import erase_unused


def replace_update(
    old: UpdateOp,
    *,
    sources: Sequence[SSAValue] | None = None,
    taps: Sequence[Tap] | None = None,
    scalars: Sequence[SSAValue] | None = None,
    continued: Sequence[BoundaryAttr] | None = None,
) -> None:
    """Replace an update by a copy with the given operands, as operands cannot be assigned."""
    beyond = () if old.beyond is None else old.beyond.data
    new = UpdateOp(
        list(old.targets),
        old.cell,
        list(old.sources if sources is None else sources),
        old.tap_list if taps is None else taps,
        old.box,
        list(old.scalars if scalars is None else scalars),
        old.index_axes,
        old.outside,
        beyond if continued is None else continued,
        list(old.points),
        old.point_uses,
        inner=old.inner is not None,
    )
    new.attributes.update(old.attributes)
    new.location = old.location
    Rewriter.replace_op(old, new)


def compact(
    sources: Sequence[SSAValue], taps: Sequence[Tap], continued: Sequence[BoundaryAttr]
) -> tuple[list[SSAValue], list[Tap], list[BoundaryAttr]]:
    """
    Drop sources that no tap needs: sources, taps with renumbered sources, and the boundaries of the
    sources, if any.
    """
    used = list(dict.fromkeys(tap.operand for tap in taps))
    left = [Tap(used.index(tap.operand), tap.offset) for tap in taps]
    return [sources[k] for k in used], left, [continued[k] for k in used] if continued else []


def read_more(
    update: UpdateOp, function: FuncOp, fields: Sequence[SSAValue], more: Sequence[Tap]
) -> None:
    """
    Let an update read more taps, of its sources and `fields` behind the sources. The arguments of
    the update's own function stand behind those of its taps already. Operations and taps without a
    reader are removed.
    """
    block, taps = function.body.block, [*update.tap_list, *more]
    erase_unused(block)
    kept = [k for k in range(len(taps)) if block.args[k].first_use is not None]
    for k in reversed(range(len(taps))):
        if k not in kept:
            block.erase_arg(block.args[k])
    continued: Sequence[BoundaryAttr] = ()
    if update.beyond is not None:
        continued = [*update.beyond.data, *(keeping() for _ in fields)]
    sources, taps, continued = compact(
        [*update.sources, *fields], [taps[k] for k in kept], continued
    )
    kinds = function.function_type
    function.function_type = kinds.from_lists(block.arg_types, kinds.outputs.data)
    replace_update(update, sources=sources, taps=taps, continued=continued)
