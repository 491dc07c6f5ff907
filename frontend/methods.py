"""
Steps as methods of a class: each object has a model with the numbers of the object.

Each use of `object.step` is a model of the object's present step. If all attributes are as in the
latest use, the model is the latest. Otherwise the function is called again, which takes some
milliseconds, and equal steps have one model: an attribute that the step does not read, as a field
of the object, makes no other model.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from timetile.frontend.errors import SourcePlace, StencilError, place_of_function
from timetile.frontend.model import Model
from timetile.frontend.steps import Step

MOST_MODELS = 8
"""Models kept for an object whose numbers change."""

MOST_BYTES = 1 << 16
"""Bytes of an array up to which a comparison is faster than a call of the step's function."""

Known = tuple[object, ...]
"""An attribute made comparable."""

PLAIN = (int, str, bytes, type(None))

BY_IDENTITY = (
    *(type, FunctionType, BuiltinFunctionType, ModuleType),
    *(property, staticmethod, classmethod),
)
"""What a class or an object holds beside numbers, and does not change itself."""


class UnknownContentError(Exception):
    """An attribute may change inside."""


def is_method(function: Callable[..., object]) -> bool:
    """Whether a function is written as a method: in a class body, with `self`."""
    if not inspect.isfunction(function):
        return False
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return (
        first is not None
        and first.name == "self"
        and first.annotation is inspect.Parameter.empty
        and function.__qualname__.rpartition(".")[0].rpartition(".")[2] not in ("", "<locals>")
    )


def known(value: object) -> Known:
    """
    Makes values comparable: numbers, texts, arrays and their collections by value, functions and
    classes by identity. Raises UnknownContentError for other objects, and for long arrays.
    """
    kind = type(value).__name__
    if isinstance(value, PLAIN):
        return kind, value
    if isinstance(value, float | complex):
        # Zeros of both signs are equal numbers.
        return kind, repr(value)
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(cast("Any", value))
        if array.dtype.hasobject or array.nbytes > MOST_BYTES:
            raise UnknownContentError
        return kind, str(array.dtype), array.shape, array.tobytes()
    if isinstance(value, list | tuple):
        return kind, *map(known, cast("Iterable[object]", value))
    if isinstance(value, dict):
        pairs = cast("Mapping[object, object]", value).items()
        return kind, *((known(name), known(each)) for name, each in pairs)
    if isinstance(value, BY_IDENTITY):
        return kind, id(cast("object", value))
    raise UnknownContentError


def attributes_of(owner: object) -> Known | None:
    """
    All attributes of an object and of the classes, made comparable; None if an attribute may change
    inside.
    """
    found: dict[str, object] = {}
    for base in reversed(type(owner).__mro__[:-1]):
        found.update(vars(base))
    found.update(vars(owner))
    try:
        return tuple(
            (name, known(value))
            for name, value in found.items()
            if not name.startswith("__") and not isinstance(value, MethodStep | Models)
        )
    except (UnknownContentError, RecursionError):
        return None


class StepPickler(pickle.Pickler):
    """Writes steps without the places of values: arguments lie where the object's step is used."""

    def reducer_override(self, obj: object) -> Any:
        """All places are one text."""
        return (SourcePlace, ()) if isinstance(obj, SourcePlace) else NotImplemented


def bytes_of_step(step: Step) -> bytes:
    """Bytes that are equal for equal steps."""
    text = BytesIO()
    StepPickler(text).dump(step)
    return text.getvalue()


class Models:
    """The models of an object's step, by the step, and the model of the latest use."""

    def __init__(self) -> None:
        self.by_step: dict[bytes, Model] = {}
        self.latest: tuple[Known, Model] | None = None
        """The attributes of the latest use, and its model."""

    def __deepcopy__(self, memo: object) -> Models:
        """A copy of the object makes models of its own."""
        return Models()

    def __reduce__(self) -> tuple[type[Models], tuple[()]]:
        """An object in another process makes models of its own."""
        return Models, ()

    def model(self, attributes: Known | None, make: Callable[[], Model]) -> Model:
        """The model for an object's attributes; `make` calls the function for another."""
        if self.latest is not None and self.latest[0] == attributes:
            return self.latest[1]
        made = make()
        step = bytes_of_step(made.step)
        found = self.by_step.pop(step, made)
        while len(self.by_step) >= MOST_MODELS:
            del self.by_step[next(iter(self.by_step))]
        self.by_step[step] = found
        self.latest = None if attributes is None else (attributes, found)
        return found


class MethodStep:
    """
    A step in a class body, by `@timetile.stencil`. `object.step` is the model for the object: the
    object's numbers are constants of the model, and changed numbers make another model.
    """

    def __init__(self, function: Callable[..., None], made: Callable[[Callable[..., None]], Model]):
        self.function, self.made = function, made
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __get__(self, owner: object | None, kind: type | None = None) -> object:
        """The model for an object. Raises StencilError for an object without a dictionary."""
        if owner is None:
            return self
        if not hasattr(owner, "__dict__"):
            raise StencilError(
                f"an object of {type(owner).__name__} has slots, and no place for models; leave "
                "out __slots__, or make the step outside of the class",
                place_of_function(self.function.__code__),
            )
        models = self.models_of(owner)
        return models.model(attributes_of(owner), lambda: self.made(self.function.__get__(owner)))

    def models_of(self, owner: object) -> Models:
        """The models of an object, kept beside the attributes."""
        # A class and its base may each have a step of one name.
        name = f"models of {self.function.__module__}.{self.function.__qualname__}"
        found = vars(owner).get(name)
        if isinstance(found, Models):
            return found
        return vars(owner).setdefault(name, Models())

    def __getattr__(self, name: str) -> object:
        """AttributeError: a step of a class has no model without an object."""
        raise AttributeError(
            f"{self.function.__qualname__} is a step of objects: take {name} from an object's step"
        )
