"""Drawn steps of volumes with memories in layers of short rows, which longer runs store alone."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from random import Random

import pytest

from support.drawn_fields import DrawnFields, Region
from support.drawn_models import Assignment, DrawnModel
from support.drawn_steps import FLOATS, grower_of, usable
from support.drawn_values import NEXT, Node
from timetile.passes.loops import store_layers
from timetile.runtime.program import whole_fields

HERE = (0, 0, 0)


@contextmanager
def layers_of_any_size() -> Generator[None]:
    """Small layers are stored alone, and in runs of any number of steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_layers, "LEAST_CELLS", 1)
        patch.setattr(store_layers, "LEAST_STEPS", 1)
        patch.setattr(whole_fields, "LEAST_STEPS", 1)
        yield


def drawn_layers(random: Random) -> DrawnModel:
    """A field of the volume, and memories of one or two layers that are added to the field."""
    kind = random.choice(FLOATS)
    shape = (random.randint(5, 7), random.randint(5, 7), random.choice((28, 40, 70)))
    memories = ["f", "g"][: random.randint(1, 2)]
    types = dict.fromkeys(("u", "c", *memories), kind)
    axes = random.choice(((0, 1, 2), (0, 1, 2), (2,), (1, 2), (0,)))
    fields = DrawnFields(shape, types, {"c": axes} if len(axes) < len(shape) else {})
    grower = grower_of(random, fields)
    grower.floats[:] = ["u", "c"]
    made = [Assignment("u", None, grower.stored(kind))]
    for region in drawn_regions(random, shape[-1]):
        grower.floats[:] = ["u", "c"]
        for name in memories:
            # A memory reads itself, the field, and new values of the memory before.
            grower.floats.append(name)
            made.append(Assignment(name, region, grower.stored(kind)))
            grower.floats[-1] = name + NEXT
        new, old = (Node("tap", (), (name, HERE)) for name in (memories[-1] + NEXT, "u" + NEXT))
        made.append(Assignment("u", region, Node(random.choice("+-"), (old, new))))
    return usable(DrawnModel(fields, tuple(made))) or drawn_layers(random)


def drawn_regions(random: Random, size: int) -> list[Region]:
    """Layers at the start of the rows, at the end, or at both."""
    thick, first = random.randint(2, 5), random.randint(1, 2)
    ends = slice(first, first + thick), slice(size - first - thick, size - first)
    chosen = random.choice((ends, ends, ends[:1], ends[1:]))
    across = slice(1, -1)
    return [(across, across, rows) for rows in chosen]
