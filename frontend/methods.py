"""Steps as methods of a class: each object has a model with the numbers of the object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np

from timetile.frontend.model import Model

MOST_MODELS = 8
"""Models kept for an object whose numbers change."""

Known = tuple[object, ...]
"""An attribute made comparable."""

PLAIN = (int, float, complex, str, bytes, type(None))


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
    Makes values comparable: numbers, texts, arrays and their collections by value, other
    objects by identity.
    """
    kind = type(value).__name__
    if isinstance(value, PLAIN):
        return kind, value
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(cast("Any", value))
        return kind, str(array.dtype), array.shape, array.tobytes()
    if isinstance(value, list | tuple):
        return kind, *map(known, cast("Iterable[object]", value))
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return "dict", *((known(name), known(each)) for name, each in pairs)
    return "object", id(value)


def attributes_of(owner: object) -> Known:
    """All attributes of an object and of the classes, made comparable."""
    found: dict[str, object] = {}
    for base in reversed(type(owner).__mro__[:-1]):
        found.update(vars(base))
    found.update(vars(owner))
    return tuple(
        (name, known(value))
        for name, value in found.items()
        if not name.startswith("__") and not isinstance(value, Models)
    )


class Models(dict[Known, Model]):
    """The models of an object's step, by the numbers of the object."""

    def __deepcopy__(self, memo: object) -> Models:
        """A copy of the object makes models of its own."""
        return Models()

    def __reduce__(self) -> tuple[type[Models], tuple[()]]:
        """An object in another process makes models of its own."""
        return Models, ()


class MethodStep:
    """
    A step in a class body, by `@timetile.stencil`. `object.step` is the model for the object: the
    object's numbers are constants of the model, and changed numbers make another model.
    """

    def __init__(self, function: Callable[..., None], made: Callable[[Callable[..., None]], Model]):
        self.function, self.made = function, made
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __get__(self, owner: object | None, kind: type | None = None) -> object:
        """The model for an object."""
        if owner is None:
            return self
        models = self.models_of(owner)
        key = attributes_of(owner)
        if key not in models:
            while len(models) >= MOST_MODELS:
                del models[next(iter(models))]
            models[key] = self.made(self.function.__get__(owner))
        return models[key]

    def models_of(self, owner: object) -> Models:
        """The models of an object, kept beside the attributes."""
        name = f"_{self.__name__}_models"
        found = vars(owner).get(name)
        if isinstance(found, Models):
            return found
        return vars(owner).setdefault(name, Models())

    def __getattr__(self, name: str) -> object:
        """AttributeError: a step of a class has no model without an object."""
        raise AttributeError(
            f"{self.function.__qualname__} is a step of objects: take {name} from an object's step"
        )
