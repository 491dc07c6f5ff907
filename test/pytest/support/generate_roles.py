"""Random programs: updates read and write buffers in any role, each over a separate box."""

from __future__ import annotations

from hypothesis import strategies as st

from support.description import Box, Buffer, Program, Store, Update
from support.expressions import Expression, Tap
from support.generate import Reach

LARGEST: dict[int, tuple[int, ...]] = {1: (23,), 2: (5, 19), 3: (3, 4, 9)}
"""The largest domain by rank. Domains are small: a wrong role is wrong in every cell."""

CAPTURED = "captured"
"""A field without writes."""


@st.composite
def boxes(draw: st.DrawFn, whole: Box) -> Box:
    """A box inside another box, in about half of the cases the whole box."""
    if draw(st.booleans()):
        return whole
    spans = list(zip(whole.lower, whole.upper, strict=True))
    lower = tuple(draw(st.integers(low, high - 1)) for low, high in spans)
    return Box(
        lower,
        tuple(
            draw(st.integers(low + 1, high)) for low, high in zip(lower, whole.upper, strict=True)
        ),
    )


@st.composite
def sums(draw: st.DrawFn, names: list[str], own: set[str], reach: Reach) -> Expression:
    """A sum of one to three taps; buffers written by the update are tapped at the cell itself."""
    total: Expression | None = None
    for number in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(names))
        spans = zip(reach.low, reach.high, strict=True)
        offset = tuple(0 if name in own else draw(st.integers(-low, high)) for low, high in spans)
        term = Tap(name, offset) * (0.3 + 0.07 * number)
        total = term if total is None else total + term
    assert total is not None
    return total


@st.composite
def programs_of_any_roles(draw: st.DrawFn) -> Program:
    """
    One to five buffers in any rotation, partly outside the loop's carried buffers, and one to three
    updates. Each update writes one or two buffers, over a separate box, and reads any buffer.
    """
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(2, largest)) for largest in LARGEST[rank])
    reach = Reach(*(tuple(draw(st.integers(0, 1)) for _ in range(rank)) for _ in range(2)))
    whole = Box.of(shape)
    bounds = whole.grown(reach.low, reach.high)
    count = draw(st.integers(1, 5))
    names = [f"b{k}" for k in range(count)]
    carried = names[: draw(st.integers(1, count))]
    rotation = draw(st.permutations(range(len(carried))))
    element = draw(st.sampled_from(("f32", "f64")))
    updates: list[Update] = []
    for _ in range(draw(st.integers(1, 3))):
        most = min(2, count)
        targets = draw(st.lists(st.sampled_from(names), min_size=1, max_size=most, unique=True))
        readable = [*names, CAPTURED]
        results = tuple(draw(sums(readable, set(targets), reach)) for _ in targets)
        box = draw(boxes(whole))
        stores = tuple(Store(k, name, box) for k, name in enumerate(targets))
        updates.append(Update(results, stores))
    used = {name for update in updates for name in update.sources}
    used |= {store.buffer for update in updates for store in update.stores} | set(carried)
    return Program(
        element,
        tuple(Buffer(name, bounds, element) for name in [*names, CAPTURED] if name in used),
        tuple(carried),
        tuple(rotation),
        tuple(updates),
    )
