"""The command line: `timetile run`, `compile`, `explain`, `example`, `cache` and `doctor`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from timetile.runtime.machine.guard import become_rank

if __name__ != "timetile.runtime.cli":
    raise ImportError(f"import this package as 'timetile.runtime.cli', not as {__name__!r}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `timetile`: the exit status, 0 where all went well. Ranks get guards."""
    try:
        if arguments is None:
            become_rank()
        # Loading the compiler takes long, and Ctrl-C must work meanwhile: import here.
        from timetile.runtime.cli.command_line import main as whole_command

        return whole_command(arguments)
    except KeyboardInterrupt:
        print("timetile: interrupted", file=sys.stderr)
        return 130
