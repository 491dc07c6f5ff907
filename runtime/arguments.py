"""The arguments of a launch, as the driver takes them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any


class Arguments:
    """
    The values of a kernel's parameters, by their C types, and where the driver finds them. They are packed once:
    the driver's bindings take longer to pack values at every launch than to launch.
    """

    def __init__(self, values: Sequence[Any], types: Sequence[Any]):
        self.values, self.types = tuple(values), tuple(types)
        self.packed = [kind(value) for value, kind in zip(self.values, self.types, strict=True)]
        self.places = (ctypes.c_void_p * len(self.packed))(*map(ctypes.addressof, self.packed))

    @property
    def address(self) -> int:
        """Of an array with the address of every value; it lives as long as the arguments."""
        return ctypes.addressof(self.places)

    def followed_by(self, values: Sequence[Any], types: Sequence[Any]) -> Arguments:
        """These, and more."""
        return Arguments((*self.values, *values), (*self.types, *types))
