"""
Run a file of Python on ranks, each with a guard: `mpiexec -n 4 python -m timetile.ranks FILE`.

If a rank dies, the guard and all other ranks say so. Arguments behind FILE are those of the file.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from timetile.runtime.machine.guard import become_rank


def main() -> None:
    """Run the file named first on the command line as the main module, as a rank with a guard."""
    if len(sys.argv) < 2:
        sys.exit("timetile: give a file of Python: mpiexec -n 4 python -m timetile.ranks FILE")
    become_rank()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
