"""What earlier passes gave a kernel: the layout, variants and homes, or a refusal without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from xdsl.ir import Operation

from timetile.dialects.tile import ExchangeBufferAttr, ExchangeOp, KernelOp, LayoutAttr, VariantAttr
from timetile.passes.diagnostics import refuse


def layout_of(kernel: KernelOp) -> LayoutAttr:
    """The layout of a kernel. Raises CompileError for a kernel without a layout."""
    if kernel.layout is None:
        refuse(kernel, "the kernel has no layout; run device-tiling first")
    return kernel.layout


def variants_of(kernel: KernelOp) -> Sequence[VariantAttr]:
    """The variants of a placed kernel. Raises CompileError for a kernel without variants."""
    if kernel.variants is None:
        refuse_unplaced(kernel)
    return kernel.variants.data


def home_of(exchange: ExchangeOp) -> ExchangeBufferAttr:
    """The home of an exchange. Raises CompileError for an exchange without a home."""
    if exchange.home is None:
        refuse_unplaced(exchange)
    return exchange.home


def refuse_unplaced(op: Operation) -> NoReturn:
    """Raise CompileError for a kernel, or a stage of a kernel, that is not placed."""
    refuse(
        op,
        "the kernel has no layout, homes or variants; run device-tiling, multi-queue-buffering and "
        "peel-boundaries first",
    )
