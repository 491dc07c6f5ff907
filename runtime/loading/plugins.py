"""Extensions by other packages: dialects and passes by the entry point `xdsl.universe`, as in
xdsl-opt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe
from xdsl.utils.exceptions import ArgSpecParseError

from timetile.lowering.universe import DIALECTS, PASSES
from timetile.passes.diagnostics import LOGGER

UNKNOWN_PASSES = re.compile(r"Unrecognized passes: \['(?P<name>[^']*)'")
"""xDSL's message on names of no pass."""


@cache
def universe() -> Universe:
    """
    All installed dialects and passes; only xDSL's and ours, with a warning, if a package cannot be
    loaded.
    """
    own = Universe(
        all_dialects={**get_all_dialects(), **DIALECTS},
        all_passes={**get_all_passes(), **PASSES},
    )
    try:
        found = Universe.get_multiverse()
    except Exception as error:
        LOGGER.warning(
            "dialects and passes of other packages are left out, as an entry point xdsl.universe "
            "cannot be loaded (%s); "
            "xdsl-opt --help says which",
            error,
        )
        return own
    return Universe(
        all_dialects={**found.all_dialects, **own.all_dialects},
        all_passes={**found.all_passes, **own.all_passes},
    )


class InstalledDialects(Context):
    """
    A context with xDSL's and our dialects, loaded at first use, and with those of other packages
    once a name is of neither: looking for them reads a file of each installed package.
    """

    knows_others = False

    def __init__(self) -> None:
        super().__init__()
        for name, factory in {**get_all_dialects(), **DIALECTS}.items():
            self.register_dialect(name, factory)

    def add_others(self) -> bool:
        """Register the dialects of other packages. False if that was done before."""
        if self.knows_others:
            return False
        self.knows_others = True
        others = universe().all_dialects
        for name in others.keys() - set(self.registered_dialect_names):
            self.register_dialect(name, others[name])
        return True

    def get_optional_op(
        self, name: str, *, dialect_stack: Sequence[str] = ()
    ) -> type[Operation] | None:
        """The class of an operation; None for a name of no dialect."""
        found = super().get_optional_op(name, dialect_stack=dialect_stack)
        again = found is None and self.add_others()
        return super().get_optional_op(name, dialect_stack=dialect_stack) if again else found

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        """The class of a type; None for a name of no dialect."""
        found = super().get_optional_type(name)
        again = found is None and self.add_others()
        return super().get_optional_type(name) if again else found

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        """The class of an attribute; None for a name of no dialect."""
        found = super().get_optional_attr(name)
        again = found is None and self.add_others()
        return super().get_optional_attr(name) if again else found


def parsed_passes(spec: str) -> tuple[ModulePass, ...]:
    """
    The passes of a pipeline as taken by xdsl-opt. Raises ValueError, in one line, for a wrong
    pipeline.
    """
    try:
        return PassPipeline.parse_spec(universe().all_passes, spec).passes
    except (ArgSpecParseError, ValueError) as error:
        if unknown := UNKNOWN_PASSES.search(str(error)):
            raise ValueError(unknown_pass(unknown["name"])) from error
        # The last line of the parser's picture tells the fault.
        lines = str(error).strip().splitlines() or ["it has no pass"]
        raise ValueError(lines[-1].strip()) from error


def unknown_pass(name: str) -> str:
    """The sentence on a name of no pass."""
    near = get_close_matches(name, universe().all_passes, 1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"no pass is named {name}; {meant}xdsl-opt --help lists all"


def is_foreign(item: ModulePass) -> bool:
    """Whether a pass comes from another package than xDSL and timetile."""
    return type(item).__module__.partition(".")[0] not in ("timetile", "xdsl")
