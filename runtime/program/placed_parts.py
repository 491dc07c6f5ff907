"""The parts of a program on their sites, and a run on all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.host.halo_notice import HaloNotice
from timetile.runtime.program.compiled_program import CompiledProgram, HostCall
from timetile.runtime.program.pieces import Span
from timetile.runtime.ranks.parted import PartedField, placed_fields
from timetile.runtime.ranks.parts_runner import PartsRunner
from timetile.runtime.ranks.sites import Site

SiteMaker = Callable[[], Sequence[Site]]
"""Makes the sites of the parts, when a program first runs."""


class PlacedParts:
    """
    The runner of a program in parts, made on its sites when first needed. Neither maker may hold
    the program, whose end gives the sites back.
    """

    def __init__(
        self, make_sites: SiteMaker, make: Callable[[Sequence[Site], HaloNotice], PartsRunner]
    ):
        self.make_sites, self.make = make_sites, make
        self.present: PartsRunner | None = None

    def run(
        self,
        program: CompiledProgram,
        values: Sequence[Any],
        span: Span,
        progress: Progress | None,
    ) -> HostCall:
        """
        Cut the fields of a call into parts, run, and gather the cells of all parts. The seconds of
        the call leave out both.
        """
        if self.present is None:
            self.present = self.make(self.make_sites(), program.kernels.notice)
        runner = self.present
        runner.progress = progress
        memory = runner.memory
        with placed_fields(memory, program.function, program.parameters, values) as placed:
            memory.synchronize()
            start = time.perf_counter()
            with runner.sites[0].run_block():
                call = program.run_host(runner, placed, span)
            memory.synchronize()
            runner.end_run()
            call.seconds = time.perf_counter() - start
            for made, value in zip(placed, values):
                if isinstance(made, PartedField) and made.is_changed:
                    memory.gather_to(made, value)
            memory.gather_notes(runner.cuts[0], placed, values)
        return call

    def close(self) -> None:
        """Give back the fields and the sites."""
        present, self.present = self.present, None
        if present is None:
            return
        present.close()
        for site in present.sites:
            site.close()
