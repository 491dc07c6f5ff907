"""The ways out named by refusals, and the pipelines that follow a way out."""

from __future__ import annotations

import re
from collections.abc import Callable

from support.pipelines import Pipeline, Value

Way = Callable[[Pipeline, re.Match[str]], Pipeline | None]
"""A pipeline after following a way out; None if nothing is left to change."""

TILING, BUFFERING, STREAMING = "device-tiling", "multi-queue-buffering", "register-streaming"


def counts(pipeline: Pipeline, name: str, default: int = 1) -> tuple[int, ...]:
    """One of the layout's options, for each in-plane axis."""
    given = pipeline.given(TILING, name)
    if isinstance(given, tuple):
        return given
    axes = pipeline.given(TILING, "cells")
    assert isinstance(axes, tuple)
    return (default,) * len(axes)


def layout(pipeline: Pipeline, axes: int) -> Pipeline:
    """A small layout of a number of axes."""
    first = (1,) * (axes - 1)
    warps = (
        counts(pipeline, "warps")[:1]
        if pipeline.given(TILING, "tile") not in (None, "warp")
        else (1,)
    )
    blocks: Value | None = (
        (*counts(pipeline, "blocks")[:1], *first) if pipeline.given(TILING, "blocks") else None
    )
    return pipeline.having(
        TILING, cells=(*first, 2), lanes=(*first, 32), warps=(*warps, *first), blocks=blocks
    )


def without_every(pipeline: Pipeline) -> Pipeline:
    for name in (BUFFERING, STREAMING):
        if pipeline.given(name, "every") is not None:
            pipeline = pipeline.having(name, every=None)
    return pipeline


def on_the_device(pipeline: Pipeline) -> Pipeline:
    """A streamed tile of the device with blocks that meet at barriers of the grid."""
    stream = pipeline.given(TILING, "stream_axis")
    pipeline = pipeline.having(
        TILING, tile="device", pack=None, stream_axis=None if stream == "none" else stream
    )
    if pipeline.given(TILING, "blocks") is None:
        pipeline = pipeline.having(TILING, blocks=(2, *counts(pipeline, "blocks")[1:]))
    return pipeline.having(STREAMING, sync="grid")


DEFAULTS = {"ahead": 3, "delay": 1, "occupancy": 2, "pack": 4}
"""Default values of options."""


def smaller(name: str, option: str) -> Way:
    def way(pipeline: Pipeline, _: re.Match[str]) -> Pipeline | None:
        given = pipeline.given(name, option) or DEFAULTS[option]
        if not isinstance(given, int) or given <= 1:
            return None
        return pipeline.having(name, **{option: given // 2})

    return way


def more_cells(pipeline: Pipeline, _: re.Match[str]) -> Pipeline:
    cells = counts(pipeline, "cells")
    return pipeline.having(TILING, cells=tuple(2 * n if n == min(cells) else n for n in cells))


def smaller_tile(pipeline: Pipeline, _: re.Match[str]) -> Pipeline | None:
    cells, warps = counts(pipeline, "cells"), counts(pipeline, "warps")
    if max(warps) > 1 and max(warps) >= max(cells):
        return pipeline.having(TILING, warps=tuple((n + 1) // 2 for n in warps))
    if max(cells) > 1:
        return pipeline.having(TILING, cells=tuple((n + 1) // 2 for n in cells))
    return None


def smaller_every(pipeline: Pipeline, _: re.Match[str]) -> Pipeline:
    return without_every(pipeline)


def smaller_depth(pipeline: Pipeline, _: re.Match[str]) -> Pipeline | None:
    given = pipeline.given("temporal-fusion", "depths")
    assert isinstance(given, tuple)
    return pipeline.having("temporal-fusion", depths=(given[0] - 1,)) if given[0] > 1 else None


def from_memory(pipeline: Pipeline) -> Pipeline:
    return pipeline.having(TILING, reads="memory", tile=None, stream_axis=None, blocks=None)


def having(name: str, **options: Value | None) -> Way:
    return lambda pipeline, _: pipeline.having(name, **options)


def number(match: re.Match[str]) -> int:
    return int(match[1])


WAYS: tuple[tuple[str, Way], ...] = (
    (r"several steps; leave it out", lambda p, _: without_every(p)),
    (r"tile=device and sync=grid", lambda p, _: on_the_device(p)),
    (
        r"tile=device and storage=shared",
        lambda p, _: on_the_device(p).having(BUFFERING, storage="shared"),
    ),
    (r"every is at least", lambda p, _: without_every(p)),
    (
        r"a warp tile has one warp",
        lambda p, _: p.having(
            TILING,
            warps=None if p.given(TILING, "warps") is None else (1,) * len(counts(p, "warps")),
        ),
    ),
    (r"a domain of one axis .*leave out stream-axis", having(TILING, stream_axis=None)),
    (r"a stream-axis of these numbers", having(TILING, stream_axis=0)),
    (
        r"and the domain (\d+); give device-tiling cells, lanes and warps for each",
        lambda p, m: layout(p, number(m)),
    ),
    (r"leave out tile and stream-axis, or", lambda p, _: from_memory(p)),
    (r"leave out tile and stream-axis, or reads=memory", having(TILING, reads=None)),
    (r"in parts; leave it out", having(TILING, cuts=None)),
    (r"use reads=memory without tile and stream-axis", lambda p, _: from_memory(p)),
    (r"give device-tiling other cuts", having(TILING, cuts=None)),
    (
        r"give device-tiling cuts with (\d+)",
        lambda p, m: p.having(
            TILING,
            cuts=(*(c if isinstance(c := p.given(TILING, "cuts"), tuple) else ()), number(m)),
        ),
    ),
    (r"device-tiling more cells", more_cells),
    (r"a smaller depth", smaller_depth),
    (r"smaller depths", smaller_depth),
    (r"or reads=memory, which", lambda p, _: from_memory(p)),
    (r"or device-tiling reads=memory", lambda p, _: from_memory(p)),
    (r"register-streaming what=copies", having(STREAMING, what="copies")),
    (r"a smaller pack", smaller(TILING, "pack")),
    (r"a smaller ahead", smaller(BUFFERING, "ahead")),
    (r"a smaller delay", smaller(STREAMING, "delay")),
    (r"a smaller every", smaller_every),
    (r"fewer warps or cells", smaller_tile),
    (r"a smaller occupancy", smaller(TILING, "occupancy")),
    (
        r"at most (\d+) blocks",
        lambda p, m: p.having(TILING, blocks=(number(m), *counts(p, "blocks")[1:])),
    ),
    (
        r"blocks=1 along the other axes",
        lambda p, _: (
            p.having(
                TILING, blocks=(*counts(p, "blocks")[:1], *[1] * (len(counts(p, "blocks")) - 1))
            )
            if len(counts(p, "blocks")) > 1
            else None
        ),
    ),
    (
        r"or tile=block for a single axis",
        lambda p, _: (
            p.having(TILING, tile="block", blocks=None) if len(counts(p, "cells")) == 1 else None
        ),
    ),
    (
        r"give the other axes cells",
        lambda p, _: p.having(
            TILING, warps=(*counts(p, "warps")[:1], *[1] * (len(counts(p, "warps")) - 1))
        ),
    ),
    (
        r"stream-axis=none, what=plane",
        lambda p, _: layout(
            p.having(TILING, stream_axis="none").having(STREAMING, what="plane"),
            len(counts(p, "cells")) + (p.given(TILING, "stream_axis") != "none"),
        ),
    ),
    (
        r"give device-tiling (\d+) cells or more along the first axis",
        lambda p, m: p.having(TILING, cells=(number(m), *counts(p, "cells")[1:])),
    ),
    (r"use register-streaming with sync=grid", having(STREAMING, sync="grid")),
    (r"with sync=grid or what=edges", having(STREAMING, what="edges")),
    (
        r"storage=registers and what=edges",
        lambda p, _: p.having(BUFFERING, storage="registers").having(STREAMING, what="edges"),
    ),
    (r"has no stream; use tile=device", having(TILING, tile="device")),
    (r"use what=plane", having(STREAMING, what="plane")),
    (r"storage=registers(?! and)", having(BUFFERING, storage="registers")),
    (r"sync=flags or sync=grid", having(STREAMING, sync="flags")),
    (r"sync=flags or sync=grid", having(STREAMING, sync="grid")),
    (r"use barrier, mbarrier", having(STREAMING, sync="barrier")),
    (
        r"or tile=device and blocks",
        lambda p, _: on_the_device(p).having(STREAMING, sync=p.given(STREAMING, "sync")),
    ),
    (r"use a barrier, or exchanges", having(STREAMING, sync="barrier")),
    (r"delayed by a step and have a slot more", having(STREAMING, delay=1)),
    (r"delay its exchanges by (\d+) or more", lambda p, m: p.having(STREAMING, delay=number(m))),
    (r"lanes of a layout multiply to 32", lambda p, _: layout(p, len(counts(p, "cells")))),
    (r"give device-tiling another layout", lambda p, _: layout(p, len(counts(p, "cells")))),
    (
        r"use sync=barrier and tiles of a block",
        lambda p, _: p.having(TILING, tile="block", blocks=None).having(STREAMING, sync="barrier"),
    ),
    (r"or sync=grid and tiles of the device", lambda p, _: on_the_device(p)),
    (r"run register-streaming with sync=flags", having(STREAMING, sync="flags")),
    (r"register-streaming with sync=flags or sync=grid", having(STREAMING, sync="grid")),
    (r"give the other axes warps or cells", lambda p, _: layout(p, len(counts(p, "cells")))),
)
"""The text of a refusal, and the pipelines that follow."""


def ways(said: str, pipeline: Pipeline) -> list[tuple[str, Pipeline]]:
    """
    The ways named by a refusal, with the pipelines that follow; ways joined by `and` are followed
    together.
    """
    found: list[tuple[str, Pipeline]] = []
    matches = [
        (pattern, way, match) for pattern, way in WAYS if (match := re.search(pattern, said))
    ]
    if re.search(r"a smaller \w+ and |cells and |registers and a", said.partition(";")[2]):
        for _, way, match in matches:
            pipeline = way(pipeline, match) or pipeline
        return [("all", pipeline)]
    for pattern, way, match in matches:
        if (followed := way(pipeline, match)) is not None:
            found.append((pattern, followed))
    return found
