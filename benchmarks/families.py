"""Families of programs in the samples of registers, by the form of their cells."""

from __future__ import annotations

PREFIX = "steps."
"""Stands before the name of a step of `choice_models.py` in the program of a sample."""

FAMILIES: dict[str, tuple[str, ...]] = {
    "sums times a scalar": (
        *("heat", "heat_constant", "heat_by_rows", "heat_weighted", "heat_fourth", "advection"),
        *("insulated", "heat3"),
    ),
    "sums times a field": ("heat_coefficient", "heat3_coefficient", "jacobi"),
    "fluxes with means": ("heat_flux",),
    "second order in time": ("wave2", "wave2_coefficient", "wave3"),
    "products of fields": ("burgers2", "burgers3"),
    "quotients": ("mean", "heat_spacing", "shallow"),
    "coupled fields": ("gray_scott2", "gray_scott3"),
    "staggered, several updates": ("elastic2", "yee3"),
}
"""Steps as users write them."""

OTHERS = "weighted sums"
"""The stencils of `stencils.py`."""


def family_of(program: str) -> str:
    """The family of a sample's program."""
    name = program.partition(":")[0]
    if not name.startswith(PREFIX):
        return OTHERS
    own = name.removeprefix(PREFIX)
    return next(family for family, names in FAMILIES.items() if own in names)


def step_programs(plate: str, cube: str) -> list[str]:
    """The programs of all steps, in FP64 and FP32."""
    return [
        f"{PREFIX}{name}:{element}:{cube if '3' in name else plate}"
        for names in FAMILIES.values()
        for name in names
        for element in ("f64", "f32")
    ]
