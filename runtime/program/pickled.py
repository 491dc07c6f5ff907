"""Compiled programs in pickles and copies: the text and the options of a program, without kernels.

The reading process takes the kernels from its cache, or makes the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.measured import ChosenSchedules, DeviceRecords
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.places import NO_FILE, TextPlace, module_of_text, places_of
from timetile.runtime.machine.floating_point import in_standard_modes
from timetile.runtime.machine.teams import thread_count
from timetile.runtime.program.compiled_program import CompiledProgram, Executor
from timetile.runtime.program.unused_options import UnusedOptions


@dataclass(frozen=True)
class ProgramText:
    """A compiled program in a pickle."""

    text: str
    """The program with its time loops found."""
    places: tuple[TextPlace, ...]
    """File and line of each operation."""
    options: Options
    cache: Cache | None
    device: str | None
    """The GPU of the measured schedules; None without a GPU."""
    given: ChosenSchedules | None
    remarks: tuple[str, ...]
    executor: Executor
    gpu: int
    threads: int | None
    """None for the usual number of the machine."""
    unused: tuple[str, ...]
    tunes: bool


def text_of_program(program: CompiledProgram) -> ProgramText:
    """The program as held by a pickle."""
    kernels = program.kernels
    threads = None if program.threads == thread_count(None) else program.threads
    return ProgramText(
        str(kernels.source), tuple(places_of(kernels.source, NO_FILE)), kernels.options,
        kernels.cache, None if kernels.records is None else kernels.records.device, kernels.given,
        tuple(kernels.remarks), program.executor, program.gpu, threads,
        program.unused.names, program.tunes,
    )  # fmt: skip


@in_standard_modes
def program_of_text(kept: ProgramText) -> CompiledProgram:
    """A new program, equal to the program of a pickle."""
    module = module_of_text(kept.text, kept.places, NO_FILE)
    records = None if kept.device is None else DeviceRecords(kept.device, kept.cache)
    kernels = ProgramKernels(module, kept.options, kept.cache, records, kept.given)
    kernels.remarks.update(dict.fromkeys(kept.remarks))
    unused = UnusedOptions(kept.executor, kept.unused)
    made = CompiledProgram(module, kernels, kept.executor, kept.gpu, kept.threads, unused)
    made.tunes = kept.tunes
    return made
