"""The rotation of a time loop's buffers, and launches with data in the buffers of the program."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lcm


@dataclass(frozen=True)
class Rotation:
    """
    The buffers of a time loop. `rotate`: how roles change. `live`: roles holding live data.
    `written`: roles written by a step. `common_halos`: buffers of a cycle have equal cells outside
    the box of their updates.
    """

    rotate: tuple[int, ...]
    live: tuple[bool, ...]
    written: tuple[bool, ...]
    common_halos: bool = False

    @cached_property
    def cycles(self) -> tuple[tuple[int, ...], ...]:
        """The roles, grouped by the cycles of the rotation."""
        seen: set[int] = set()
        cycles: list[tuple[int, ...]] = []
        for start in range(len(self.rotate)):
            cycle: list[int] = []
            role = start
            while role not in seen:
                seen.add(role)
                cycle.append(role)
                role = self.rotate[role]
            if cycle:
                cycles.append(tuple(sorted(cycle)))
        return tuple(cycles)

    @cached_property
    def order(self) -> int:
        """Steps until every role names the first buffer again."""
        return lcm(*(len(cycle) for cycle in self.cycles)) if self.cycles else 1

    @cached_property
    def cycles_by_role(self) -> dict[int, tuple[int, ...]]:
        """The cycle of each role."""
        return {role: cycle for cycle in self.cycles for role in cycle}

    def cycle_of(self, role: int) -> tuple[int, ...]:
        """The cycle of a role."""
        return self.cycles_by_role[role]

    def part(self, cycle: tuple[int, ...]) -> Rotation:
        """One cycle as an independent rotation, with roles numbered from 0 in ascending order."""
        return Rotation(
            tuple(cycle.index(self.rotate[role]) for role in cycle),
            tuple(self.live[role] for role in cycle),
            tuple(self.written[role] for role in cycle),
            self.common_halos,
        )

    def is_moved(self, role: int) -> bool:
        """
        Whether the role's live data moves between buffers: a step writes some buffer of the role's
        cycle.
        """
        return self.live[role] and any(self.written[k] for k in self.cycle_of(role))

    def stays_home(self, role: int) -> bool:
        """
        Whether a launch of one step can use the buffers of the unfused program in the role's cycle:
        no step writes a buffer read by a step.
        """
        return not any(self.written[k] and self.live[k] for k in self.cycle_of(role))

    def has_home(self, role: int, *, single_steps: bool) -> bool:
        """
        Whether the role's data can be kept in buffers with the right halo: the program's own
        buffer, and scratch buffers with a copy of the own halo. False for launches of several steps
        if a cycle has several live versions, and halos apart: each version would need a buffer
        more.
        """
        versions = sum(self.live[k] for k in self.cycle_of(role))
        alone = self.common_halos or single_steps or not self.is_moved(role) or versions == 1
        return alone and self.stays_home(role)

    @property
    def home_cycles(self) -> tuple[int, ...]:
        """
        The lengths of the cycles in which data moves, if kernels of several steps find all data
        with the halo around; otherwise empty. A launch advancing no multiple of the lengths leaves
        all data in the program's own buffers. Also empty for common halos, with which any number of
        steps is good.
        """
        moved = [role for role in range(len(self.rotate)) if self.is_moved(role)]
        if self.common_halos or not all(self.has_home(role, single_steps=False) for role in moved):
            return ()
        return tuple(len(cycle) for cycle in self.cycles if not set(cycle).isdisjoint(moved))

    @property
    def turns(self) -> tuple[tuple[int, ...], ...]:
        """
        The cycles for which kernels of several steps gain by common halos: the buffers take turns
        to hold live versions, and kernels read the versions with the halo around.
        """
        return tuple(
            cycle
            for cycle in self.cycles
            if len(cycle) > 1 and any(self.is_moved(k) and self.stays_home(k) for k in cycle)
        )

    @cached_property
    def orbits(self) -> tuple[tuple[int, ...], ...]:
        """
        For each role, the buffers of the program named by the role before steps 0, 1, ... until the
        buffers repeat.
        """
        orbits: list[tuple[int, ...]] = []
        for start in range(len(self.rotate)):
            orbit, role = [start], self.rotate[start]
            while role != start:
                orbit.append(role)
                role = self.rotate[role]
            orbits.append(tuple(orbit))
        return tuple(orbits)

    def own(self, role: int, step: int) -> int:
        """The program's buffer named by a role before a step of the unfused program."""
        orbit = self.orbits[role]
        return orbit[step % len(orbit)]
