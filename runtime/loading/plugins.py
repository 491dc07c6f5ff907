"""Extensions by other packages: dialects and passes by the entry point `xdsl.universe`, as in
xdsl-opt.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect
from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe
from xdsl.utils.exceptions import ArgSpecParseError

from timetile.lowering.universe import DIALECTS, PASSES
from timetile.passes.diagnostics import LOGGER


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
        # The last line of the parser's picture tells the fault.
        lines = str(error).strip().splitlines() or ["it has no pass"]
        raise ValueError(lines[-1].strip()) from error


def is_foreign(item: ModulePass) -> bool:
    """Whether a pass comes from another package than xDSL and timetile."""
    return type(item).__module__.partition(".")[0] not in ("timetile", "xdsl")
