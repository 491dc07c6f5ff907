"""Programs and schedules drawn at random, for tests of general statements."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from support.catalogue import sum_program
from support.description import Box, Buffer, Element, Program, Store, Update
from support.expressions import (
    Coordinate,
    Expression,
    Offset,
    Power,
    Scalar,
    Select,
    Tap,
    call,
    expression,
)
from support.generate_fields import with_own_bounds
from support.schedules import Schedule, block_plane, block_row, warp_row
from timetile.dialects.tile import Addressing, Form, Published, Storage, Sync
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass

LARGEST: dict[int, Offset] = {1: (97,), 2: (13, 71), 3: (5, 7, 37)}
"""The largest domain by rank: the last axis is wider than one warp's cells."""

BINARY = ("add", "sub", "mul", "maximum", "minimum", "maxnum", "minnum", "copysign")
ROUNDINGS = ("floor", "ceil", "trunc", "roundeven")
FORMS = tuple(Form)
PUBLISHED: tuple[Published | None, ...] = (None, Published.EDGES, Published.PLANE)
SYNCS: tuple[Sync | None, ...] = (None, Sync.MBARRIER)
PREDICATES = ("olt", "ole", "ogt", "oge", "one")


KINDS = ("flag_i1", "count_i32", "long_i64", "place_index")
"""Scalars of integer types."""


@dataclass(frozen=True)
class Reach:
    """How far taps of neighbours look, below and above, per axis."""

    low: Offset
    high: Offset


@dataclass(frozen=True)
class Readable:
    """A buffer for taps, and whether taps may read other cells."""

    name: str
    anywhere: bool = True


@st.composite
def taps(draw: st.DrawFn, readable: list[Readable], reach: Reach) -> Tap:
    source = draw(st.sampled_from(readable))
    if not source.anywhere:
        return Tap(source.name, (0,) * len(reach.low))
    spans = zip(reach.low, reach.high, strict=True)
    return Tap(source.name, tuple(draw(st.integers(-low, high)) for low, high in spans))


@st.composite
def sums(draw: st.DrawFn, readable: list[Readable], reach: Reach) -> Expression:
    """A weighted sum of taps: by rows or by columns, as sums can be split, or in any order."""
    terms = draw(st.lists(taps(readable, reach), min_size=1, max_size=6))
    if (order := draw(st.sampled_from(["any", "rows", "columns"]))) != "any":
        terms.sort(key=lambda tap: tap.offset[:: -1 if order == "columns" else 1])
    total: Expression | None = None
    for number, tap in enumerate(terms):
        term = tap * (0.3 + 0.07 * number)
        total = term if total is None else total + term
    assert total is not None
    return total


def negation(x: float) -> Expression:
    return call("neg", x)


def magnitude(x: Expression) -> Expression:
    return call("abs", x)


def quotient(x: Expression, y: Expression) -> Expression:
    """A quotient with a divisor of at least 1."""
    return x / (magnitude(y) + 1.0)


def root(x: Expression) -> Expression:
    return call("sqrt", magnitude(x))


def reciprocal_root(x: Expression) -> Expression:
    return call("rsqrt", magnitude(x) + 0.5)


def small_coordinate(axis: int) -> Expression:
    return Coordinate(axis) * 0.01


def constants() -> st.SearchStrategy[Expression]:
    """A constant, an operation of constants, or a negation of a constant."""
    small = st.floats(0.125, 2.0, width=32)
    return st.one_of(
        st.builds(expression, small),
        st.builds(negation, small),
        st.builds(call, st.sampled_from(BINARY), small, small),
    )


def combined(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """An operation on smaller expressions, without division by zero and with real results."""
    small = st.floats(0.125, 2.0, width=32)
    return st.one_of(
        st.builds(call, st.sampled_from(BINARY), children, children),
        st.builds(call, st.sampled_from(BINARY), children, small),
        # Expressions without cells: folded, or computed near the use.
        st.builds(call, st.sampled_from(BINARY), children, constants()),
        st.builds(call, st.sampled_from(ROUNDINGS), children),
        st.builds(operator.neg, children),
        st.builds(magnitude, children),
        st.builds(quotient, children, children),
        st.builds(root, children),
        st.builds(reciprocal_root, children),
        st.builds(call, st.just("fma"), children, children, children),
        st.builds(Power, children, st.integers(0, 3)),
        st.builds(Select, st.sampled_from(PREDICATES), children, children, children, children),
    )


def of_scalars(scalars: tuple[str, ...]) -> st.SearchStrategy[Expression]:
    """A scalar, or a quotient, a root or a product of scalars: equal for all cells."""
    scalar = st.sampled_from([Scalar(name) for name in scalars])
    return st.one_of(
        scalar,
        st.builds(quotient, scalar, scalar),
        st.builds(root, scalar),
        st.builds(operator.mul, scalar, scalar),
    )


@st.composite
def cells(
    draw: st.DrawFn, readable: list[Readable], reach: Reach, scalars: tuple[str, ...]
) -> Expression:
    """An update's expression: a sum, or any expression drawn back to magnitudes below 1."""
    linear = draw(sums(readable, reach))
    if draw(st.booleans()):
        return linear * 0.4
    leaves = [taps(readable, reach), st.just(linear)]
    leaves += [of_scalars(scalars)] * len(scalars)
    leaves += [st.builds(small_coordinate, st.integers(0, len(reach.low) - 1))]
    tree = draw(st.recursive(st.one_of(leaves), combined, max_leaves=5))
    # The shared node has two uses, and is computed once.
    return tree / (call("abs", tree) + expression(1.0))


@st.composite
def boxes(draw: st.DrawFn, whole: Box) -> Box:
    """The whole box, or a part of the box."""
    if draw(st.integers(0, 3)):
        return whole
    lower = tuple(
        draw(st.integers(low, high - 1)) for low, high in zip(whole.lower, whole.upper, strict=True)
    )
    upper = tuple(
        draw(st.integers(low + 1, high)) for low, high in zip(lower, whole.upper, strict=True)
    )
    return Box(lower, upper)


@st.composite
def updates_of(
    draw: st.DrawFn,
    targets: list[str],
    readable: list[Readable],
    reach: Reach,
    scalars: tuple[str, ...],
    whole: Box,
) -> list[Update]:
    """
    Updates of state fields, by one apply or by an apply each. An update may read the target of an
    earlier update.
    """
    if len(targets) == 2 and draw(st.booleans()):
        results = tuple(draw(cells(readable, reach, scalars)) for _ in targets)
        stores = [Store(k, name, draw(boxes(whole))) for k, name in enumerate(targets)]
        return [Update(results, tuple(stores))]
    updates: list[Update] = []
    for target in targets:
        cell = draw(cells(readable, reach, scalars))
        updates.append(Update((cell,), (Store(0, target, draw(boxes(whole))),)))
        readable.append(Readable(target))
    return updates


@st.composite
def some_axes(draw: st.DrawFn, rank: int) -> tuple[int, ...] | None:
    """The axes of a field of fewer axes than the domain; None for all axes."""
    axes = draw(st.sets(st.integers(0, rank - 1), min_size=1))
    return None if len(axes) == rank else tuple(sorted(axes))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """
    One or two state fields in two or three buffers each. Updates read each other's fields, earlier
    results of the step, a coefficient and scalars of any type; a field may be updated in place.
    Fields have one box of cells, or a box each.
    """
    rank = draw(st.integers(1, 3))
    element: Element = draw(st.sampled_from(("f32", "f64")))
    widest = 2 if rank < 3 else 1
    reach = Reach(
        tuple(draw(st.integers(0, widest)) for _ in range(rank)),
        tuple(draw(st.integers(0, widest)) for _ in range(rank)),
    )
    shape = tuple(draw(st.integers(1, largest)) for largest in LARGEST[rank])
    lower = tuple(draw(st.integers(-3, 3)) for _ in range(rank))
    whole = Box(lower, tuple(low + n for low, n in zip(lower, shape, strict=True)))
    margin = tuple(draw(st.integers(0, 1)) for _ in range(rank))
    bounds = whole.grown(reach.low, tuple(a + b for a, b in zip(reach.high, margin, strict=True)))
    scalars = draw(st.sampled_from([(), ("dt",), ("dt", *KINDS), KINDS]))

    carried: list[str] = []
    rotation: list[int] = []
    fields: list[tuple[str, str]] = []
    """(read fields, written fields) of a step, by state field."""
    readable: list[Readable] = []
    for k in range(draw(st.integers(1, 2))):
        first, order = len(carried), draw(st.sampled_from([2, 2, 3]))
        names = [f"{word}{k}" for word in ("now", "next", "old")[:order]]
        carried += names
        rotation += [first + (n + 1) % order for n in range(order)]
        fields.append((names[0], names[1]))
        readable += [Readable(names[0]), *(Readable(name) for name in names[2:])]
    buffers = [Buffer(name, bounds, element) for name in carried]
    for name in ("coefficient", "profile")[: draw(st.integers(0, 2))]:
        kind: Element = draw(st.sampled_from(("f32", element)))
        buffers.append(Buffer(name, bounds, kind, draw(some_axes(rank))))
        readable.append(Readable(name))

    targets = [target for _, target in fields]
    updates = draw(updates_of(targets, readable, reach, scalars, whole))
    if draw(st.integers(0, 3)) == 0:
        buffers.append(Buffer("total", bounds, element))
        summed = Tap("total", (0,) * rank) * 0.5 + draw(taps(readable, reach)) * 0.5
        updates.append(Update((summed,), (Store(0, "total", draw(boxes(whole))),)))
    used = {n.name for u in updates for n in u.nodes if isinstance(n, Scalar)}
    program = Program(
        element,
        tuple(buffers),
        tuple(carried),
        tuple(rotation),
        tuple(updates),
        tuple(name for name in scalars if name in used),
    )
    return with_own_bounds(draw, program) if draw(st.booleans()) else program


@st.composite
def tilings(draw: st.DrawFn, rank: int) -> DeviceTilingPass:
    if rank < 3:
        if rank == 1 or draw(st.booleans()):
            return warp_row(draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2, 4])))
        return block_row(draw(st.sampled_from([1, 2, 4])), draw(st.integers(2, 3)))
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    return block_plane((rows, columns), (draw(st.integers(2, 4)), draw(st.integers(1, 2))))


@st.composite
def schedules(draw: st.DrawFn, rank: int) -> Schedule:
    """Any layout, storage, form and chunk height."""
    tiling = draw(tilings(rank))
    planes = draw(st.sampled_from([None, 1, 2, 5, 17])) if rank > 1 else 1
    form = draw(st.sampled_from(FORMS))
    if draw(st.booleans()):
        buffering = MultiQueueBufferingPass(
            storage=Storage.SHARED,
            addressing=draw(st.sampled_from(Addressing)),
        )
        return Schedule("shared", tiling, buffering, None, form, planes)
    ahead = draw(st.integers(0, 3)) if rank > 1 else 0
    buffering = MultiQueueBufferingPass(ahead=ahead)
    period = draw(st.sampled_from([None, 1, 2, 3]))
    delay = draw(st.sampled_from([None, 0, 1]))
    what = draw(st.sampled_from(PUBLISHED))
    sync = draw(st.sampled_from(SYNCS))
    streaming = RegisterStreamingPass(delay=delay, period=period, what=what, sync=sync)
    return Schedule("registers", tiling, buffering, streaming, form, planes)


@st.composite
def travelling_sums(draw: st.DrawFn) -> tuple[Program, Schedule]:
    """A sum over successive columns, and a schedule for `form=lanes`: one warp holds each row."""
    rank = draw(st.integers(2, 3))
    offset = st.tuples(*[st.integers(-1, 1)] * (rank - 1), st.integers(-3, 3))
    offsets = draw(st.lists(offset, min_size=2, max_size=8, unique=True))
    # Two columns at least.
    offsets += [(*(0,) * (rank - 1), column) for column in (-1, 1)]
    offsets = sorted(dict.fromkeys(offsets), key=lambda offset: offset[::-1])
    domain = tuple(draw(st.integers(1, most)) for most in LARGEST[rank])
    tiling = warp_row(draw(st.sampled_from([1, 2, 4])))
    if rank == 3:
        tiling = block_plane((draw(st.integers(1, 3)), 2), (draw(st.integers(2, 4)), 1))
    schedule = replace(draw(schedules(rank)), tiling=tiling, form=Form.LANES, shown="_lanes1")
    return sum_program(draw(st.sampled_from(["f32", "f64"])), offsets)(domain), schedule
