"""Values of the dotted names in a function's code, and further values by way of the user's own
functions, objects, modules and containers. No code of the user runs.
"""

from __future__ import annotations

import dis
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, cast

from timetile.frontend.errors import SameCode

LIBRARIES = (*{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}, "<frozen")
"""How the files of installed code begin."""

DEEPEST = 4
"""Most calls, objects and containers followed in a row."""

MOST_PARTS = 64
"""Most parts of a followed container."""

ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")

Called = FunctionType | MethodType


@dataclass(frozen=True)
class DottedName:
    """A name and attributes in some code, as `np.random.normal`, each with its instruction."""

    code: CodeType
    parts: tuple[str, ...]
    offsets: tuple[int, ...]


def names_read(code: CodeType) -> tuple[DottedName, ...]:
    """The dotted names read by some code, nested code included."""
    return names_of_same(SameCode(code))


@lru_cache
def names_of_same(same: SameCode) -> tuple[DottedName, ...]:
    """The dotted names of code known by its identity."""
    code, found, before = same.code, list[DottedName](), -1
    for made in dis.get_instructions(code):
        if made.opname in ATTRIBUTES:
            if found and found[-1].offsets[-1] == before:
                last = found.pop()
                parts, offsets = (*last.parts, made.argval), (*last.offsets, made.offset)
                found.append(DottedName(code, parts, offsets))
        elif made.opname.startswith("LOAD_") and made.opname != "LOAD_CONST":
            read: Any = made.argval
            name = cast("Any", read[-1] if isinstance(read, tuple) else read)
            if isinstance(name, str):
                found.append(DottedName(code, (name,), (made.offset,)))
        before = made.offset
    inside = (each for each in code.co_consts if isinstance(each, CodeType))
    return (*found, *(name for each in inside for name in names_read(each)))


def value_of(called: Called, name: DottedName) -> tuple[Any, int]:
    """
    The value of a name in a function, and the instruction of the last part: the parts end at the
    first object of installed code that is no module. The value of an argument is None.
    """
    value: Any = value_around(called, name.parts[0])
    last = name.offsets[0]
    for part, offset in zip(name.parts[1:], name.offsets[1:], strict=True):
        if value is None or is_closed(value):
            break
        value, last = attribute_of(value, part), offset
    return value, last


def is_closed(value: Any) -> bool:
    """Whether a value is an object or a class of installed code."""
    return not isinstance(value, ModuleType) and is_of_library(class_of(value))


def value_around(called: Called, name: str) -> Any:
    """A value from around a function, or the object of a method, else None."""
    code = called.__code__
    if isinstance(called, MethodType) and code.co_varnames[:1] == (name,):
        return called.__self__
    known: Any = called
    around = closed_over(called) if name in code.co_freevars else known.__globals__
    return around.get(name)


def closed_over(called: Called) -> dict[str, Any]:
    """Names and values of outer functions, without names whose values come later."""
    found: dict[str, Any] = {}
    for name, cell in zip(called.__code__.co_freevars, called.__closure__ or (), strict=True):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def class_of(value: Any) -> type[Any]:
    """The class of an object; a class itself."""
    return cast("type[Any]", value if isinstance(value, type) else type(value))


def attribute_of(owner: Any, name: str) -> Any:
    """An attribute, read without a call of the user's code, or None."""
    if isinstance(owner, ModuleType):
        return vars(owner).get(name)
    found: Any = inspect.getattr_static(owner, name, None)
    if isinstance(found, MemberDescriptorType):
        return getattr(owner, name, None)
    if isinstance(found, staticmethod):
        return cast("Any", found).__func__
    if isinstance(found, classmethod):
        return MethodType(cast("Any", found).__func__, class_of(owner))
    function: Any = found.fget if isinstance(found, property) else found
    is_bound = isinstance(function, FunctionType) and not isinstance(owner, type)
    return MethodType(function, owner) if is_bound else function


def is_of_library(kind: type[Any] | FunctionType) -> bool:
    """Whether a class or a function is of installed code, of Python's or of this package."""
    name = kind.__module__ or ""
    if name.partition(".")[0] == "timetile":
        return True
    if isinstance(kind, FunctionType):
        return kind.__code__.co_filename.startswith(LIBRARIES)
    file = getattr(sys.modules.get(name), "__file__", None)
    return name != "__main__" and (file is None or file.startswith(LIBRARIES))


def own_function(value: Any) -> FunctionType | None:
    """The user's function behind a function or a method, else None."""
    function: Any = value.__func__ if isinstance(value, MethodType) else value
    is_own = isinstance(function, FunctionType) and not is_of_library(function)
    return function if is_own else None


def directly_reached(value: Any) -> Iterator[Any]:
    """The values read by a called value, or the parts of a container."""
    function = own_function(value)
    if function is not None:
        for name in names_read(function.__code__):
            yield value_of(value, name)[0]
        yield from function.__defaults__ or ()
        yield from (function.__kwdefaults__ or {}).values()
    elif isinstance(value, partial):
        made = cast("Any", value)
        yield from (made.func, *made.args, *made.keywords.values())
    elif isinstance(value, list | tuple | dict):
        parts = cast("list[Any] | tuple[Any, ...] | dict[Any, Any]", value)
        if len(parts) <= MOST_PARTS:
            yield from parts.values() if isinstance(parts, dict) else parts
    elif not isinstance(value, type) and not is_of_library(class_of(value)):
        yield attribute_of(value, "__call__")


def same_object(value: Any) -> object:
    """A key of an object. Each look at a method makes another object."""
    if isinstance(value, MethodType):
        return id(value.__func__), id(value.__self__)
    return id(value)


def reached(value: Any) -> list[Any]:
    """A value, and the values found from there."""
    found, level = {same_object(value): value}, [value]
    for _ in range(DEEPEST):
        values = (each for one in level for each in directly_reached(one) if each is not None)
        new = {same_object(each): each for each in values}
        level = [each for key, each in new.items() if key not in found]
        found |= new
    return list(found.values())
