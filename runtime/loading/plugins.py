"""Extensions by other packages: dialects and passes by the entry point `xdsl.universe`, as in
xdsl-opt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache

from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect
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


def all_dialects() -> dict[str, Callable[[], Dialect]]:
    """The installed dialects, by name."""
    return universe().all_dialects


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
