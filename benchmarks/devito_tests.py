"""
Run Devito's own tests with all operators on timetile (needs gcc, and Devito's sources).

    python benchmarks/devito_tests.py FOLDER operator dimension --out FILE.json

FOLDER has Devito's conftest, tests and examples, of the installed version. Each name is a
file of tests, as in `test_NAME`, without the tests on several processes. A row has a file's
outcomes, the operators with a grid, how many ran on timetile, and the reasons of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from devito_operators import dv
from measure import commit
from reports import write_report

import timetile.devito
from timetile.frontend.devito.operators import KINDS, LanguageKind
from timetile.frontend.devito.where_calls_ran import RanOn


@dataclass
class TestRow:
    """A file of Devito's tests."""

    tests: str
    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    failed: list[str] = field(default_factory=list[str])
    operators: int = 0
    on_timetile: int = 0
    reasons: dict[str, int] = field(default_factory=dict[str, int])


class Counted:
    """A plugin of pytest that notes outcomes, and where the operators of each test ran."""

    def __init__(self):
        self.outcomes: Counter[str] = Counter()
        self.failed: list[str] = []
        self.ran: dict[tuple[str, int], RanOn] = {}
        self.test = ""

    def pytest_runtest_setup(self, item: Any) -> None:
        self.test = str(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1
            self.failed += [report.nodeid] * (report.outcome == "failed")

    def watch(self, kind: LanguageKind) -> None:
        """Note where the operators of a class run."""
        plain: Any = vars(kind)["apply"]

        def apply(operator: Any, **given: Any) -> Any:
            summary = plain(operator, **given)
            if any(getattr(each, "grid", None) is not None for each in operator.parameters):
                self.ran[self.test, id(operator)] = summary.ran_on
            return summary

        type.__setattr__(kind, "apply", apply)


def counted(name: str, plugin: Counted) -> TestRow:
    """The row of a file of tests."""
    words = ["-q", "-m", "not parallel", "-p", "no:xdist", "-p", "no:cacheprovider"]
    pytest.main([*words, f"tests/test_{name}.py"], plugins=[plugin])
    reasons = Counter(ran.reason for ran in plugin.ran.values() if not ran.is_timetile)
    on_timetile = sum(ran.is_timetile for ran in plugin.ran.values())
    return TestRow(
        name,
        dict(plugin.outcomes),
        plugin.failed,
        len(plugin.ran),
        on_timetile,
        dict(reasons.most_common()),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = None if options.out is None else options.out.absolute()
    timetile.devito.register(executor="cpu")
    dv.configuration["language"] = "timetile"
    warnings.simplefilter("ignore", timetile.devito.DevitoWarning)
    rows: list[TestRow] = []
    about = {"commit": commit(), "command": "python benchmarks/devito_tests.py"}
    os.chdir(options.folder)
    for name in options.names:
        plugin = Counted()
        for kind in [kind for kinds in KINDS.values() for kind in kinds]:
            plugin.watch(kind)
        rows.append(counted(name, plugin))
        print(json.dumps(asdict(rows[-1])), flush=True)
        if out is not None:
            write_report(out, about, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
