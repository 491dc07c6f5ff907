"""The arguments of a launch, in the driver's form."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any


class LaunchArguments:
    """
    The values of a kernel's parameters, by C type, and their places for the driver. Values are
    packed once: packing at every launch takes the driver's bindings longer than a launch.
    """

    def __init__(self, values: Sequence[Any], types: Sequence[Any]):
        self.values, self.types = tuple(values), tuple(types)
        self.packed = [kind(value) for value, kind in zip(self.values, self.types, strict=True)]
        self.places = (ctypes.c_void_p * len(self.packed))(*map(ctypes.addressof, self.packed))
        self.longer: tuple[tuple[Any, ...], LaunchArguments] | None = None
        self.address = ctypes.addressof(self.places)
        """
        The address of an array with the address of every value. The array lives as long as the
        arguments.
        """

    def followed_by(self, values: Sequence[Any], types: Sequence[Any]) -> LaunchArguments:
        """The arguments, followed by further values; packed once for equal values in a row."""
        key, known = (*values, *types), self.longer
        if known is None or known[0] != key:
            made = LaunchArguments((*self.values, *values), (*self.types, *types))
            self.longer = known = key, made
        return known[1]

    def moved(self, places: Mapping[int, int]) -> LaunchArguments:
        """The arguments with other pointers, by those here; others stay."""
        values = [
            places.get(value, value) if kind is ctypes.c_void_p else value
            for value, kind in zip(self.values, self.types)
        ]
        return LaunchArguments(values, self.types)
