"""
The table of tested programs: functions from a domain to a program.

Together the programs cover the dialect: ranks, element types, reaches, rotations, coupled fields,
boxes, coordinates, scalars, and every operation correctly rounded by PTX.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

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
    weighted_sum,
)

Domain = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A program of the table, its domains, and its depth."""

    name: str
    make: Callable[[Domain], Program]
    domains: tuple[Domain, ...]
    depth: int


# Sums.


def normalised(offsets: list[Offset]) -> dict[Offset, float]:
    """Distinct weights with sum 1, in order."""
    raw = [1.0 + 0.13 * n for n in range(len(offsets))]
    return {o: w / sum(raw) for o, w in zip(offsets, raw, strict=True)}


def star(rank: int, reach: int) -> list[Offset]:
    """The cell and its neighbours along each axis, slowest axis first."""
    zero = (0,) * rank
    arms = {
        tuple(d if k == axis else 0 for k in range(rank))
        for axis in range(rank)
        for d in range(-reach, reach + 1)
    }
    return sorted({zero, *arms})


def cross(reach: int) -> list[Offset]:
    """The ends of a star's arms and the star's middle: a long reach with few taps."""
    return sorted([(-reach, 0), (0, -reach), (0, 0), (0, 1), (0, reach), (reach, 0)])


def box(low: Offset, high: Offset) -> list[Offset]:
    """All offsets between two corners."""
    return list(product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))))


def reach_of(offsets: list[Offset]) -> tuple[Offset, Offset]:
    """How far the offsets look below and above, per axis."""
    axes = list(zip(*offsets, strict=True))
    return tuple(max(0, -min(axis)) for axis in axes), tuple(max(0, *axis) for axis in axes)


def two_buffers(
    domain: Domain, element: Element, offsets: list[Offset], cell: Expression, *extra: str
) -> Program:
    """`u` and `v` take turns; the bounds are the domain and halos as wide as the offsets reach."""
    inner = Box.of(domain)
    bounds = inner.grown(*reach_of(offsets))
    return Program(
        element,
        (Buffer("u", bounds, element), Buffer("v", bounds, element)),
        ("u", "v"),
        (1, 0),
        (Update((cell,), (Store(0, "v", inner),)),),
        extra,
    )


def sum_program(element: Element, offsets: list[Offset]) -> Callable[[Domain], Program]:
    """A weighted sum of taps."""
    return lambda domain: two_buffers(domain, element, offsets, weighted_sum(normalised(offsets)))


# Nonlinear cells.


def taps(rank: int) -> tuple[Expression, ...]:
    """The cell, and the neighbours below and above along the slowest and the last axis."""

    def at(axis: int, distance: int) -> Tap:
        return Tap("u", tuple(distance if k == axis else 0 for k in range(rank)))

    return at(0, 0), at(0, -1), at(0, 1), at(rank - 1, -1), at(rank - 1, 1)


def roots(domain: Domain) -> Program:
    """Square roots, reciprocals, quotients, extrema, signs and absolute values."""
    c, n, s, w, e = taps(2)
    mean = call("sqrt", n * n + s * s) * 0.5
    slope = call("abs", e - w) / (c + 0.25)
    signed = call("copysign", slope, w - e)
    clipped = call("minimum", call("maximum", signed, -0.5), 0.75)
    inverse = call("rsqrt", call("maxnum", c, 0.1) + 1.0)
    cell = call("minnum", mean + 0.1 * clipped, 2.0) * inverse - (-c) * 0.2
    return two_buffers(domain, "f64", star(2, 1), cell)


def limiter(domain: Domain) -> Program:
    """A slope limiter: comparisons and selections."""
    c, n, s, w, e = taps(2)
    rising = Select("olt", w, e, (e - w) * 0.25, (w - e) * 0.125)
    steep = Select("oge", n, s, n * 0.5, s * 0.5)
    cell = Select("ogt", rising, steep * 0.5, c * 0.75, c * 0.5 + rising + steep * 0.125)
    return two_buffers(domain, "f32", star(2, 1), cell)


def fused(domain: Domain) -> Program:
    """Fused multiply-adds written in the program."""
    c, n, s, w, e = taps(1)[0], *taps(1)[1:]
    cell = call("fma", c, 0.5, call("fma", n + w, 0.125, (s + e) * 0.0625))
    return two_buffers(domain, "f32", star(1, 1), cell)


def powers(domain: Domain) -> Program:
    """Integer powers, positive and negative, and 0."""
    low, mid, high = (Tap("u", (d,)) for d in (-1, 0, 1))
    raised = Power(low, 3) * 0.1 + Power(mid, 6) * 0.05 - Power(mid, 0) * 0.02
    cell = raised + Power(high + 1.0, -2) * 0.5 + Power(mid, 1) * 0.3
    return two_buffers(domain, "f64", star(1, 1), cell)


def forced(domain: Domain) -> Program:
    """Scalars and coordinates in the update: a source growing along both axes."""
    c, n, s, w, e = taps(2)
    place = Coordinate(0) * 0.01 + Coordinate(1, shift=2) * 0.003
    cell = c + Scalar("dt") * (n + s + w + e - 4.0 * c) + Scalar("strength") * place
    return two_buffers(domain, "f64", star(2, 1), cell, "dt", "strength")


# Other rotations and several buffers.


def wave(domain: Domain, element: Element, reach: int) -> Program:
    """Second order in time: reads t and t - 1, writes t + 1; the squared velocity is a field."""
    rank, inner = len(domain), Box.of(domain)
    offsets = star(rank, reach)
    bounds = inner.grown(*reach_of(offsets))
    zero = (0,) * rank
    laplacian = weighted_sum({o: 0.3 - 0.02 * n for n, o in enumerate(offsets)})
    now, before = Tap("u", zero), Tap("old", zero)
    cell = (now * 2.0 - before) * 0.5 + Tap("velocity", zero) * laplacian * 0.1
    names = ("u", "new", "old", "velocity")
    return Program(
        element,
        tuple(Buffer(name, bounds, element) for name in names),
        ("u", "new", "old"),
        (1, 2, 0),
        (Update((cell,), (Store(0, "new", inner),)),),
    )


def multistep(domain: Domain) -> Program:
    """Adams-Bashforth: three older versions are read, four buffers rotate."""
    inner = Box.of(domain)
    bounds = inner.grown((1,), (1,))
    cell = (
        Tap("a", (0,)) * 0.6
        + (Tap("a", (-1,)) + Tap("a", (1,))) * 0.1
        + (Tap("b", (0,)) - Tap("c", (0,))) * 0.2
        + Tap("c", (1,)) * 0.15
    )
    return Program(
        "f64",
        tuple(Buffer(name, bounds, "f64") for name in "abcd"),
        ("a", "b", "c", "d"),
        (3, 0, 1, 2),
        (Update((cell,), (Store(0, "d", inner),)),),
    )


def half_stored(domain: Domain) -> Program:
    """Two results of one apply; only the second result is read again in the step."""
    inner = Box.of(domain)
    bounds = inner.grown((1, 1), (1, 1))
    first = weighted_sum(normalised(star(2, 1)), "a")
    second = Tap("b", (0, 0)) * 0.5 + Tap("a", (0, 1)) * 0.25 + Tap("a", (1, 0)) * 0.25
    third = weighted_sum(normalised(box((-1, -1), (1, 1))), "d") * 0.5 + Tap("e", (-1, 0)) * 0.5
    names = ("a", "b", "c", "d", "e", "f")
    return Program(
        "f64",
        tuple(Buffer(name, bounds, "f64") for name in names),
        names,
        (2, 3, 0, 1, 5, 4),
        (
            Update((first, second), (Store(0, "c", inner), Store(1, "d", inner))),
            Update((third,), (Store(0, "f", inner),)),
        ),
    )


def coupled(domain: Domain) -> Program:
    """Velocity and stress: the second update reads the results of the first update."""
    inner = Box.of(domain)
    bounds = inner.grown((1, 1), (1, 1))
    difference = Tap("s", (0, 0)) - Tap("s", (-1, 0)) + Tap("s", (0, 0)) - Tap("s", (0, -1))
    velocity = Tap("v", (0, 0)) * 0.9 + difference * 0.1
    divergence = Tap("w", (0, 1)) + Tap("w", (1, 0)) - Tap("w", (0, 0)) * 2.0
    stress = Tap("s", (0, 0)) * 0.9 + divergence * 0.1
    return Program(
        "f64",
        tuple(Buffer(name, bounds, "f64") for name in ("v", "w", "s", "p")),
        ("v", "w", "s", "p"),
        (1, 0, 3, 2),
        (
            Update((velocity,), (Store(0, "w", inner),)),
            Update((stress,), (Store(0, "p", inner),)),
        ),
    )


def gray_scott(domain: Domain) -> Program:
    """Two reacting fields: one apply with two results, scalars for feed and kill."""
    inner = Box.of(domain)
    bounds = inner.grown((1, 1), (1, 1))

    def spread(name: str) -> Expression:
        return weighted_sum(dict.fromkeys(star(2, 1), 0.2), name)

    a, b = Tap("a", (0, 0)), Tap("b", (0, 0))
    reaction = a * b * b * 0.2
    feed, kill = Scalar("feed"), Scalar("kill")
    first = spread("a") - reaction + feed * (call("neg", a) + 1.0)
    second = spread("b") + reaction - (feed + kill) * b
    return Program(
        "f64",
        tuple(Buffer(name, bounds, "f64") for name in ("a", "b", "c", "d")),
        ("a", "b", "c", "d"),
        (2, 3, 0, 1),
        (Update((first, second), (Store(0, "c", inner), Store(1, "d", inner))),),
        ("feed", "kill"),
    )


def accumulated(domain: Domain) -> Program:
    """A captured field updated in place, at the cell itself: the sum of all steps."""
    inner = Box.of(domain)
    offsets = star(2, 1)
    bounds = inner.grown(*reach_of(offsets))
    names = ("u", "v", "total")
    return Program(
        "f64",
        tuple(Buffer(name, bounds, "f64") for name in names),
        ("u", "v"),
        (1, 0),
        (
            Update((weighted_sum(normalised(offsets)),), (Store(0, "v", inner),)),
            Update(
                (Tap("total", (0, 0)) * 0.5 + Tap("v", (0, 0)) * 0.5,), (Store(0, "total", inner),)
            ),
        ),
    )


def nested_boxes(domain: Domain) -> Program:
    """A box inside another, and bounds with a start other than 0: the frame has another update."""
    inner = Box((3, -5), (3 + domain[0], -5 + domain[1]))
    bounds = inner.grown((2, 1), (1, 3))
    core = Box(
        tuple(a + (b - a) // 3 for a, b in zip(inner.lower, inner.upper, strict=True)),
        tuple(b - (b - a) // 4 for a, b in zip(inner.lower, inner.upper, strict=True)),
    )
    smooth = weighted_sum(normalised(star(2, 1)))
    sharp = Tap("v", (0, 0)) * 1.25 - Tap("u", (0, 0)) * 0.25
    return Program(
        "f64",
        (Buffer("u", bounds, "f64"), Buffer("v", bounds, "f64")),
        ("u", "v"),
        (1, 0),
        (
            Update((smooth,), (Store(0, "v", inner),)),
            Update((sharp,), (Store(0, "v", core),)),
        ),
    )


def two_boxes(domain: Domain) -> Program:
    """One apply with results stored to different boxes; neither box holds the other."""
    inner = Box.of(domain)
    bounds = inner.grown((1, 1), (1, 1))
    left = Box((0, 0), (domain[0], max(1, domain[1] - 2)))
    right = Box((min(1, domain[0] - 1), 0), domain)
    first = weighted_sum(normalised(star(2, 1)), "a")
    second = Tap("b", (0, 0)) * 0.5 + Tap("a", (0, 1)) * 0.25 + Tap("a", (1, 0)) * 0.25
    return Program(
        "f32",
        tuple(Buffer(name, bounds, "f32") for name in ("a", "b", "c", "d")),
        ("a", "b", "c", "d"),
        (2, 3, 0, 1),
        (Update((first, second), (Store(0, "c", left), Store(1, "d", right))),),
    )


def mixed(domain: Domain) -> Program:
    """A coefficient field of single precision, with separate bounds, in a double program."""
    inner, rank = Box.of(domain), len(domain)
    offsets = star(rank, 1)
    bounds = inner.grown(*reach_of(offsets))
    wide = inner.grown((2, 3)[-rank:], (1, 2)[-rank:])
    here, there = Tap("k", (0, 0)[-rank:]), Tap("k", (-1, 2)[-rank:])
    cell = weighted_sum(normalised(offsets)) * here + there * 0.01
    return Program(
        "f64",
        (Buffer("u", bounds, "f64"), Buffer("v", bounds, "f64"), Buffer("k", wide, "f32")),
        ("u", "v"),
        (1, 0),
        (Update((cell,), (Store(0, "v", inner),)),),
    )


def slopes(domain: Domain) -> Program:
    """The squared differences to the neighbours: both cells of a face compute the difference."""
    c, *around = taps(2)
    squares = [(c - n) * (c - n) for n in around]
    return two_buffers(domain, "f64", star(2, 1), sum(squares[1:], squares[0]) * 0.1 + c * 0.5)


def fluxes(domain: Domain) -> Program:
    """Fluxes through faces: a cell's loss is the neighbour's gain, by one formula."""
    c, n, s, w, e = taps(2)

    def flux(a: Expression, b: Expression) -> Expression:
        return (b - a) / (call("abs", b - a) + 1.0)

    along, across = flux(c, e) - flux(w, c), flux(c, s) - flux(n, c)
    return two_buffers(domain, "f32", star(2, 1), c + (along + across) * 0.2)


def variation(domain: Domain) -> Program:
    """How much a column varies: of the newest plane, the sum reads magnitudes of differences."""
    c, n, s, w, e = taps(2)
    rise = call("abs", c - n) + call("abs", s - c)
    return two_buffers(domain, "f64", star(2, 1), c * 0.5 + (rise + call("abs", e - w)) * 0.1)


def upwind(domain: Domain) -> Program:
    """The newest plane enters a comparison, not a sum."""
    _, n, s, _, e = taps(2)
    return two_buffers(domain, "f64", star(2, 1), Select("ogt", n, e, s, s * 0.25))


CATALOGUE: tuple[Entry, ...] = (
    Entry("heat-1d", sum_program("f64", star(1, 1)), ((211,), (7,), (1,)), 4),
    Entry("skewed-1d", sum_program("f32", [(-3,), (-1,), (0,), (1,)]), ((131,), (601,), (2,)), 3),
    Entry("fused-1d", fused, ((67,),), 3),
    Entry("powers-1d", powers, ((53,),), 3),
    Entry("mixed-1d", mixed, ((403,), (3,)), 3),
    Entry("multistep-1d", multistep, ((97,), (3,)), 3),
    Entry("heat-2d", sum_program("f64", star(2, 1)), ((37, 131), (5, 3), (1, 1)), 4),
    Entry("box-2d", sum_program("f32", box((-1, -1), (1, 1))), ((23, 127), (2, 11)), 3),
    Entry("even-2d", sum_program("f64", box((0, 0), (1, 1))), ((19, 61), (1, 7)), 3),
    Entry("skewed-2d", sum_program("f64", box((-2, 0), (0, 3))), ((17, 53), (3, 1)), 2),
    Entry("far-2d", sum_program("f32", cross(10)), ((29, 43), (2, 3)), 2),
    Entry("roots-2d", roots, ((19, 37), (1, 2)), 3),
    Entry("slopes-2d", slopes, ((9, 135), (1, 2)), 3),
    Entry("variation-2d", variation, ((9, 135), (2, 1)), 3),
    Entry("fluxes-2d", fluxes, ((9, 135), (2, 1)), 3),
    Entry("limiter-2d", limiter, ((19, 37), (2, 2)), 3),
    Entry("forced-2d", forced, ((17, 41), (3, 2)), 3),
    Entry("wave-2d", lambda d: wave(d, "f64", 2), ((23, 47), (2, 3)), 3),
    Entry("coupled-2d", coupled, ((19, 43), (2, 1)), 3),
    Entry("gray-scott-2d", gray_scott, ((17, 37), (1, 3)), 3),
    Entry("accumulated-2d", accumulated, ((17, 41), (2, 5)), 3),
    Entry("nested-boxes-2d", nested_boxes, ((23, 47), (5, 4)), 3),
    Entry("two-boxes-2d", two_boxes, ((19, 41), (1, 3)), 2),
    Entry("mixed-2d", mixed, ((17, 39), (2, 3)), 3),
    Entry("upwind-2d", upwind, ((17, 41), (2, 3)), 3),
    Entry("half-stored-2d", half_stored, ((23, 67), (2, 3)), 2),
    Entry("heat-3d", sum_program("f32", star(3, 1)), ((11, 13, 37), (2, 3, 1), (1, 1, 1)), 3),
    Entry("box-3d", sum_program("f64", box((-1, -1, -1), (1, 1, 1))), ((7, 11, 19),), 2),
    Entry("skewed-3d", sum_program("f64", box((-1, 0, -2), (0, 1, 0))), ((7, 9, 23),), 2),
    Entry("wave-3d", lambda d: wave(d, "f32", 2), ((9, 11, 17), (1, 2, 3)), 2),
)


def entry(name: str) -> Entry:
    """A program of the table by name."""
    return next(e for e in CATALOGUE if e.name == name)
