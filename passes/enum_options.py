"""Options of passes that are members of enumerations, written as words in a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Self, get_args, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.str_enum import StrEnum


@dataclass(frozen=True)
class EnumOptionsPass(ModulePass):
    """
    A pass with options that are members of enumerations: `tile=block` is `TileLevel.BLOCK`. Raises
    ValueError for another word than those of the enumeration.
    """

    def __post_init__(self) -> None:
        for name, kind in enumerations(type(self)).items():
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, member(type(self), name, given, kind))

    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        """The pass of a pipeline, in which options are words."""
        parameters = dict(spec.normalize_parameter_names().parameters)
        for name, kind in enumerations(cls).items():
            if name in parameters:
                words = parameters[name]
                parameters[name] = tuple(member(cls, name, word, kind) for word in words)
        return super().from_spec(ArgSpec(spec.name, parameters))


@cache
def enumerations(item: type[ModulePass]) -> dict[str, type[StrEnum]]:
    """The options of a pass that are members of enumerations, such as `TileLevel | None`."""
    found: dict[str, type[StrEnum]] = {}
    for name, hint in get_type_hints(item).items():
        for kind in (hint, *get_args(hint)):
            if isinstance(kind, type) and issubclass(kind, StrEnum):
                found[name] = kind
    return found


def member(item: type[ModulePass], name: str, word: Any, kind: type[StrEnum]) -> StrEnum:
    """The member of an enumeration for a word, or a ValueError with all words."""
    words = [str(each) for each in kind]
    if word not in words:
        option = name.replace("_", "-")
        raise ValueError(f"{item.name}: {option} is one of {', '.join(words)}, got {word}")
    return kind(word)
