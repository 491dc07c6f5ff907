"""Complex fields of a step: pairs of fields, and pairs of values with Python's operators."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from timetile.frontend.errors import StencilError, error
from timetile.frontend.symbols import Field, Index, Level, Next
from timetile.frontend.values import NotReal, Value
from timetile.frontend.whole_fields import WholeField

REAL, IMAG = "real", "imag"

Real = Value | float
"""A real value of a cell, or a number."""


def field_of_part(name: str, part: str) -> str:
    """The name of a field of a pair: no name of an argument."""
    return f"{name}.{part}"


class ComplexValue(NotReal):
    """
    A complex number for every cell: two values, `real` and `imag`. `+`, `-` and `*` take complex
    and real values and numbers, `/` a real divisor.
    """

    __slots__ = ("imag", "real")

    def __init__(self, real: Real, imag: Real):
        self.real, self.imag = real, imag

    def __add__(self, other: ComplexOperand) -> ComplexValue:
        if (pair := pair_of(other)) is not None:
            return ComplexValue(self.real + pair.real, self.imag + pair.imag)
        return ComplexValue(self.real + real_of(other), self.imag)

    def __radd__(self, other: Real | complex) -> ComplexValue:
        if (pair := pair_of(other)) is not None:
            return pair + self
        return ComplexValue(real_of(other) + self.real, self.imag)

    def __sub__(self, other: ComplexOperand) -> ComplexValue:
        if (pair := pair_of(other)) is not None:
            return ComplexValue(self.real - pair.real, self.imag - pair.imag)
        return ComplexValue(self.real - real_of(other), self.imag)

    def __rsub__(self, other: Real | complex) -> ComplexValue:
        if (pair := pair_of(other)) is not None:
            return pair - self
        return ComplexValue(real_of(other) - self.real, -self.imag)

    def __mul__(self, other: ComplexOperand) -> ComplexValue:
        if (y := imaginary_part(other)) is not None:
            return ComplexValue(-y * self.imag, y * self.real)
        if (pair := pair_of(other)) is not None:
            if (y := imaginary_part(self)) is not None:
                return ComplexValue(-y * pair.imag, y * pair.real)
            return ComplexValue(
                self.real * pair.real - self.imag * pair.imag,
                self.real * pair.imag + self.imag * pair.real,
            )
        factor = real_of(other)
        return ComplexValue(times(self.real, factor), self.imag * factor)

    def __rmul__(self, other: Real | complex) -> ComplexValue:
        if pair_of(other) is not None:
            return self * other
        factor = real_of(other)
        return ComplexValue(times(factor, self.real), factor * self.imag)

    def __truediv__(self, other: ComplexOperand) -> ComplexValue:
        if pair_of(other) is not None:
            raise no_divisor()
        divisor = real_of(other)
        real = self.real if is_zero(self.real) else self.real / divisor
        return ComplexValue(real, self.imag / divisor)

    def __rtruediv__(self, other: object) -> Any:
        raise no_divisor()

    def __neg__(self) -> ComplexValue:
        return ComplexValue(-self.real, -self.imag)

    def __pos__(self) -> ComplexValue:
        return self

    def conj(self) -> ComplexValue:
        """The complex conjugate."""
        return ComplexValue(self.real, -self.imag)

    def abs2(self) -> Value:
        """The square of the absolute value."""
        return cast("Value", self.real * self.real + self.imag * self.imag)

    def exp(self) -> ComplexValue:
        """The exponential, `np.exp(a)`: a number of absolute value 1 if the real part is 0."""
        cosine, sine = np.cos(self.imag), np.sin(self.imag)
        if is_zero(self.real):
            return ComplexValue(cosine, sine)
        size = np.exp(self.real)
        return ComplexValue(size * cosine, size * sine)

    def __abs__(self) -> Any:
        raise error("abs of a complex value is a root; write np.sqrt(a.abs2())")

    def __eq__(self, other: object) -> Any:
        raise error("complex values have no comparisons; compare a.real and a.imag")

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise error("a complex value has no truth value; compare a.real and a.imag")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        name = ufunc.__name__
        if method == "__call__" and not options:
            if name in ("conjugate", "negative", "positive"):
                return {"conjugate": self.conj(), "negative": -self}.get(name, self)
            if name == "exp":
                return self.exp()
            operator = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv"}
            if name in operator:
                first, second = (number_of_python(each) for each in inputs)
                if isinstance(first, ComplexValue):
                    return getattr(first, f"__{operator[name]}__")(second)
                return getattr(self, f"__r{operator[name]}__")(first)
        raise error(
            f"np.{name} of a complex value is not expressed; write it with a.real, a.imag, "
            "a.conj(), a.abs2(), np.exp and the operators + - * /"
        )

    def __repr__(self) -> str:
        return f"<a complex value of every cell: {self.real}, {self.imag}>"


def no_divisor() -> StencilError:
    """The refusal of a complex divisor."""
    return error(
        "a division by a complex value is not expressed; write a * b.conj() / b.abs2(), and "
        "a * (1 / c) for a complex number c"
    )


ComplexOperand = ComplexValue | Value | complex
"""An operand of a complex value."""


def number_of_python(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    numpys: Any = np.generic
    return value.item() if isinstance(value, numpys) else value


def number_of(value: object) -> complex | None:
    """A complex number of Python or NumPy; None for other operands."""
    found: Any = number_of_python(value)
    return found if isinstance(found, complex) else None


def is_zero(part: object) -> bool:
    """Whether a part is the number 0, and no value of cells."""
    return isinstance(part, int | float) and part == 0


def times(first: Real, second: Real) -> Real:
    """The product of parts; the number 0 if a part is."""
    return 0.0 if is_zero(first) or is_zero(second) else first * second


def imaginary_part(value: object) -> Real | None:
    """The imaginary part of a number, or a complex value, without a real part; None for others."""
    if isinstance(value, ComplexValue):
        return value.imag if is_zero(value.real) else None
    number = number_of(value)
    return number.imag if number is not None and number.real == 0 and number.imag != 0 else None


def pair_of(value: object) -> ComplexValue | None:
    """A complex operand; None for a real one."""
    if isinstance(value, ComplexValue):
        return value
    number = number_of(value)
    if number is None or number.imag == 0:
        return None
    return ComplexValue(number.real, number.imag)


def real_of(value: Any) -> Any:
    """A real operand."""
    number = number_of(value)
    return value if number is None else number.real


class ComplexLevel(WholeField):
    """A complex field at another time level: `psi.prev[0, 0]`, `psi.next[0, 0]`."""

    __slots__ = ("_imag", "_real")

    def __init__(self, real: Level, imag: Level):
        self._real, self._imag = real, imag

    def __repr__(self) -> str:
        return f"<{self._real}, {self._imag}>"

    def __getitem__(self, offsets: Index) -> ComplexValue:
        """The value `offsets` cells away along each axis. Raises StencilError for a wrong index."""
        return ComplexValue(self._real[offsets], self._imag[offsets])

    def __setitem__(self, region: slice | tuple[slice, ...], value: ComplexOperand) -> None:
        """New values for a region of the array, as `Next.__setitem__`."""
        if not isinstance(self._real, Next) or not isinstance(self._imag, Next):
            raise error("a step assigns new values only; write psi.next[2:5] = ...")
        real, imag = both_parts(value)
        self._real[region] = real
        self._imag[region] = imag


class Complex(WholeField):
    """
    A complex field of a step function: a pair of real fields. `psi[-1, 0]`, `psi.prev`, `psi.next`
    and `psi.next = value` are those of a `Field`, with complex values. Arrays are of complex64 or
    complex128.
    """

    __slots__ = ("_imag", "_real")

    def __init__(self, real: Field, imag: Field):
        self._real, self._imag = real, imag

    def __repr__(self) -> str:
        return f"<{self._real}, {self._imag}>"

    def __getitem__(self, offsets: Index) -> ComplexValue:
        """The value at the beginning of the step, `offsets` cells away along each axis."""
        return ComplexValue(self._real[offsets], self._imag[offsets])

    @property
    def prev(self) -> ComplexLevel:
        """The field one step earlier."""
        return ComplexLevel(self._real.prev, self._imag.prev)

    @property
    def next(self) -> ComplexLevel:
        """The new values, after their assignment."""
        return ComplexLevel(self._real.next, self._imag.next)

    @next.setter
    def next(self, value: ComplexOperand) -> None:
        """Assign the new value of each cell; a real value has an imaginary part of 0."""
        self._real.next, self._imag.next = both_parts(value)


def both_parts(value: ComplexOperand) -> tuple[Any, Any]:
    """The parts of an assigned value."""
    pair = pair_of(value)
    return (real_of(value), 0.0) if pair is None else (pair.real, pair.imag)
