"""
The arguments of a run: from a .npz file, from `--set`, from the number of steps, of a shape, or at
random.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.stencil import StencilBoundsAttr

from timetile.runtime.arithmetic.cells import DTYPES, dtype_of
from timetile.runtime.cli.outputs import written
from timetile.runtime.cli.start import Range, random_cells, shaped
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.host.loop_facts import is_trip_count
from timetile.runtime.host.parameters import Parameter
from timetile.runtime.program.arguments import check_memory, checked_argument
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.pieces import has_time_loop
from timetile.runtime.program.written_fields import partners_of, written_arguments

Array = NDArray[Any]

POSITION = re.compile(r"(?:arg|arr_)?(\d{1,9})")
"""An argument by position: `2` and `arg2`, or `arr_2` as in `np.savez`."""

TRUTHS = {"true": True, "1": True, "false": False, "0": False}


STEP = "timetile.step"
"""The name, in a snapshot, of the number of the next step."""

LARGEST_FIELD = 2**56
"""Bytes of a field beyond the reach of NumPy arrays."""


def label(parameter: Parameter) -> str:
    """`arg0 (%u)`, or `arg0` without a name in the program."""
    return f"arg{parameter.position}" + (f" (%{parameter.name})" if parameter.name else "")


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a .npz file by name."""
    try:
        loaded: Any = np.load(path)
        if not hasattr(loaded, "files"):
            raise UsageError(f"{path} holds one array; write a .npz file with np.savez")
        with loaded:
            return {name: np.asarray(loaded[name], order="C") for name in loaded.files}
    except (
        ValueError,
        EOFError,
        KeyError,
        NotImplementedError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise UsageError(
            f"{path} is not a .npz file of plain arrays; write a file with np.savez"
        ) from error


def write_arrays(path: Path, program: CompiledProgram, values: Sequence[Any]) -> None:
    """Write the fields to a .npz file, as `arg0` and so on."""
    fields = {f"arg{p.position}": values[p.position] for p in program.parameters if p.bounds}
    # NumPy adds a suffix to a name, but not to an open file.
    with written(path) as file:
        np.savez(file, **fields)


def of_field_type(array: Array, parameter: Parameter) -> Array:
    """The array of a field; files of NumPy's know cells of bf16 as two bytes without a type."""
    if parameter.bounds is None:
        return array
    field: Any = dtype_of(parameter.kind)
    return array.view(field) if array.dtype == f"V{field.itemsize}" else array


class Arguments:
    """Gathers a value for every argument of a program, each given once."""

    def __init__(self, program: CompiledProgram):
        self.program = program
        self.name = program.function.sym_name.data
        self.values: dict[int, Any] = {}

    def parameter(self, key: str, given_by: str) -> Parameter:
        """The argument named by a key, by position first. Raises UsageError for an unknown key."""
        parameters = self.program.parameters
        match = POSITION.fullmatch(key)
        if match is not None and int(match[1]) < len(parameters):
            return parameters[int(match[1])]
        for parameter in parameters:
            if parameter.name is not None and parameter.name == key.removeprefix("%"):
                return parameter
        known = ", ".join(map(label, parameters))
        raise UsageError(
            f"{given_by} names {key!r}, not an argument of @{self.name}; its arguments are {known}"
        )

    def give(self, parameter: Parameter, value: Any) -> None:
        """Set an argument. Raises UsageError for a second value."""
        if parameter.position in self.values:
            raise UsageError(f"{label(parameter)} is given twice; give every argument once")
        self.values[parameter.position] = value

    def add_arrays(self, arrays: Mapping[str, Array], given_by: str) -> None:
        """Take the arrays of a file; arrays of no axes are scalars."""
        for key, array in arrays.items():
            parameter = self.parameter(key, given_by)
            if parameter.bounds is None and array.ndim:
                raise UsageError(
                    f"{given_by} has an array of shape {array.shape} for {label(parameter)}, a "
                    "scalar; give the scalar with --set "
                    f"{parameter.name or parameter.position}=VALUE"
                )
            self.give(parameter, of_field_type(array, parameter))

    def add_setting(self, setting: str) -> None:
        """Take `dt=0.1`: a scalar, or a field with this value everywhere."""
        key, equals, text = setting.partition("=")
        if not equals:
            raise UsageError(f"--set {setting} has no value; write --set {setting}=VALUE")
        parameter = self.parameter(key, f"--set {setting}")
        value = parse_number(text, parameter)
        if parameter.bounds is None:
            self.give(parameter, value)
        else:
            self.give(parameter, np.full(parameter.shape, value, dtype_of(parameter.kind)))

    def check_size(self) -> None:
        """UsageError where the fields together are larger than any memory."""
        for parameter in self.program.parameters:
            if parameter.bounds is None:
                continue
            size = prod(parameter.shape) * dtype_of(parameter.kind).itemsize
            if size > LARGEST_FIELD:
                raise UsageError(
                    f"{label(parameter)} has {size} bytes, more than any memory; give the program "
                    "a smaller field"
                )

    def add_steps(self, steps: int | None) -> None:
        """Set the arguments that are only a number of steps."""
        for parameter, value in zip(self.program.parameters, self.program.function.body.block.args):
            if not is_trip_count(value):
                continue
            if parameter.position in self.values:
                if steps is not None:
                    raise UsageError(
                        f"{label(parameter)} is the number of steps, and is given by --steps, "
                        "too; give the number once"
                    )
                continue
            if steps is None:
                raise UsageError(
                    f"{label(parameter)} is the number of steps; give it with --steps N"
                )
            self.values[parameter.position] = steps

    @cached_property
    def written(self) -> dict[int, StencilBoundsAttr | None]:
        """The arguments written by the program, and the cells written by steps."""
        return written_arguments(self.program.function)

    def is_coefficient(self, parameter: Parameter) -> bool:
        """A time loop runs, and no step of the program writes the field."""
        return parameter.position not in self.written and has_time_loop(self.program.function)

    def without_values(self) -> list[Parameter]:
        """The fields still without a value."""
        fields = [p for p in self.program.parameters if p.bounds is not None]
        return [p for p in fields if p.position not in self.values]

    def add_shape(self, shape: str) -> None:
        """Give one shape to all fields written by steps and still without a value."""
        fields = [
            (p, p.bounds)
            for p in self.without_values()
            if p.is_field and p.bounds is not None and p.position in self.written
        ]
        for parameter, bounds in fields:
            inside = self.written[parameter.position] or bounds
            cells = shaped(shape, bounds, inside, dtype_of(parameter.kind))
            self.values[parameter.position] = cells
        if not fields:
            raise UsageError(
                f"--init {shape} is for fields written by steps, and all have values; leave out "
                "the option"
            )

    def add_random(self, seed: int, settings: Sequence[str]) -> None:
        """
        Fill the fields still without a value, each from an own stream of random numbers, in the
        given ranges.
        """
        ranges: dict[int, Range] = {}
        for setting in settings:
            key, wanted = Range.parsed(setting)
            parameter = self.parameter(key, wanted.text)
            if parameter.bounds is None or parameter.position in self.values:
                why = "is a scalar" if parameter.bounds is None else "has its values already"
                raise UsageError(
                    f"{wanted.text} is for a field filled by --random, and {label(parameter)} {why}"
                )
            if parameter.position in ranges:
                raise UsageError(
                    f"{wanted.text} is the second range of {label(parameter)}; give one"
                )
            ranges[parameter.position] = wanted
        for parameter in self.without_values():
            self.values[parameter.position] = random_cells(
                parameter,
                parameter.shape,
                seed,
                ranges.get(parameter.position),
                constant=self.is_coefficient(parameter),
            )

    def check_partners(self, missing: Sequence[Parameter]) -> None:
        """UsageError with the given partners of the missing fields, if all have partners."""
        partners = partners_of(self.program.function)
        given = [
            [k for k in partners.get(p.position, ()) if k in self.values and k != p.position]
            for p in missing
        ]
        if not all(given):
            return
        pairs = " and ".join(
            f"{label(p)}, which takes turns with {label(self.program.parameters[min(known)])}"
            for p, known in zip(missing, given)
        )
        raise UsageError(
            f"no values for {pairs}; give each buffer an array, or one array under both names if "
            "both begin alike"
        )

    def all(self) -> list[Any]:
        """The values in order; UsageError where one is missing or does not fit."""
        for parameter in self.program.parameters:
            if not parameter.is_read:
                self.values.setdefault(parameter.position, None)
        missing = [p for p in self.program.parameters if p.position not in self.values]
        fields = ", ".join(label(p) for p in missing if p.bounds)
        if fields:
            self.check_partners([p for p in missing if p.bounds])
            raise UsageError(
                f"no values for {fields}; give values with --args IN.npz, or fill the fields with "
                "--random SEED or --init discs"
            )
        for parameter in missing:
            raise UsageError(
                f"no value for {label(parameter)}, a scalar of type {parameter.kind}; give the "
                f"value with --set {parameter.name or parameter.position}=VALUE"
            )
        try:
            values = [checked_argument(p, self.values[p.position]) for p in self.program.parameters]
            check_memory(self.program.parameters, values, self.program.constant_arguments)
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from error
        return values


def parse_float(text: str, dtype: np.dtype[Any]) -> Any:
    """
    A number of a floating-point type. Raises ValueError for no number, or one outside the type's
    range.
    """
    with np.errstate(over="ignore"):
        value = dtype.type(float(text))
    if np.isinf(value) and "inf" not in text.lower():
        raise ValueError(text)
    return value


def parse_number(text: str, parameter: Parameter) -> Any:
    """A number given by `--set`, of the argument's type. Raises UsageError for no such number."""
    if parameter.kind not in DTYPES:
        raise UsageError(
            f"{label(parameter)} is of type {parameter.kind}, neither a number nor a field of "
            "static bounds; remove the argument from the function, or cast the argument to a "
            "field of static bounds"
        )
    dtype = dtype_of(parameter.kind)
    try:
        match dtype.kind:
            case "f":
                return parse_float(text, dtype)
            case "b":
                return np.bool_(TRUTHS[text.lower()])
            case _:
                limits, number = np.iinfo(dtype), int(text)
                if not limits.min <= number <= limits.max:
                    raise ValueError(text)
                return dtype.type(number)
    except (ValueError, KeyError) as error:
        raise UsageError(
            f"{label(parameter)} is of type {parameter.kind}, and {text!r} is not a number of the "
            "type"
        ) from error
