"""Schedules chosen by measuring, and the record of a measurement in the cache.

A record belongs to a program with its sizes and options, to the compiler and its tools, to the GPU
and to the driver: a change of any of these leaves the record unused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile.schedule import ScheduleAttr
from timetile.passes.loops.temporal_fusion import write_depths
from timetile.runtime.cache.keys import key_of
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.kernel import Parts
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.loading.modules import make_context

RECORD = "measured.json"
"""The part of a cache entry with a record."""


@dataclass(frozen=True)
class ChosenSchedule:
    """A schedule of a loop, given in place of the model's choice."""

    depth: int
    """Steps of a launch."""
    schedule: str
    """The schedule's attribute, as text."""

    def write(self, loop: LoopOp) -> None:
        """Write the schedule, and the depths of its plans, on a loop. ValueError for other text."""
        loop.schedule = schedule_of(self.schedule)
        write_depths(loop, [self.depth])


ChosenSchedules = tuple[ChosenSchedule | None, ...]
"""For each time loop in order its schedule; None for the model's choice."""


@dataclass(frozen=True)
class MeasuredRow:
    """One measured choice of schedules."""

    chosen: ChosenSchedules
    gcells_per_second: float
    """1e9 cell updates of a second; 0 for a choice that was not taken, for other bits."""


@dataclass(frozen=True)
class Measured:
    """The record of tuning a program."""

    program: str
    """Name and sizes, as `@heat, 8192 x 8192 cells (f64)`."""
    device: str
    """The GPU and the driver."""
    rows: tuple[MeasuredRow, ...]
    """The taken choice first."""
    default: float
    """1e9 cell updates of a second of the model's choice."""
    in_run: bool = False
    """Whether a long run measured on its own steps."""

    @property
    def best(self) -> MeasuredRow:
        """The taken choice."""
        return self.rows[0]

    @property
    def taken(self) -> ChosenSchedules | None:
        """The schedules in place of the model's choice; None if the model's choice stays."""
        return None if self.best.gcells_per_second == self.default else self.best.chosen


WORTH_TAKING = 1.01
"""A schedule is taken if faster than the default by this factor."""


def best_first(rows: list[MeasuredRow]) -> list[MeasuredRow]:
    """The rows, the taken one first: the default unless another is clearly faster."""
    default, *_ = rows
    best = max(rows, key=lambda row: row.gcells_per_second)
    if best.gcells_per_second < WORTH_TAKING * default.gcells_per_second:
        best = default
    return [best, *(row for row in rows if row is not best)]


def schedule_of(text: str) -> ScheduleAttr:
    """A schedule printed as text. Raises ValueError for other text."""
    attribute = Parser(make_context(), text).parse_attribute()
    if not isinstance(attribute, ScheduleAttr):
        raise ValueError(f"{text} is no schedule")
    return attribute


def written_schedules(module: ModuleOp) -> ChosenSchedules:
    """The schedules written on the loops of a module."""
    return tuple(
        None if loop.schedule is None else ChosenSchedule(loop.depth_list[0], str(loop.schedule))
        for loop in loops_of(module)
    )


def record_key(key: str, device: str) -> str:
    """The key under which a program's measured schedules are kept."""
    return key_of(key, "measured", device)


def encode_record(record: Measured) -> Parts:
    """A record as parts of a cache entry."""
    return {RECORD: json.dumps(asdict(record)).encode()}


def decode_record(parts: Parts) -> Measured:
    """A record. Raises TypeError, ValueError or LookupError for other parts."""
    found = json.loads(parts[RECORD])
    rows = tuple(
        MeasuredRow(
            tuple(None if each is None else ChosenSchedule(**each) for each in row["chosen"]),
            float(row["gcells_per_second"]),
        )
        for row in found["rows"]
    )
    if not rows:
        raise ValueError("a record has no rows")
    default = float(found["default"])
    in_run = bool(found.get("in_run", False))
    return Measured(str(found["program"]), str(found["device"]), rows, default, in_run)


class DeviceRecords:
    """What was measured on a GPU, in the cache and in this process."""

    def __init__(self, device: str, cache: Cache | None):
        self.device, self.cache = device, cache
        self.here: dict[str, Measured] = {}
        self.is_new = False
        """Whether a run measured meanwhile."""

    def of(self, key: str) -> Measured | None:
        """The record of a program, by the key of its kernels; None without one."""
        if key not in self.here and self.cache is not None:
            kept = self.cache.decoded(record_key(key, self.device), decode_record)
            if kept is not None:
                self.here[key] = kept
        return self.here.get(key)

    def keep(self, key: str, record: Measured) -> None:
        """Keep the record of a program."""
        self.here[key] = record
        if self.cache is not None:
            self.cache.write(record_key(key, self.device), encode_record(record))


def records(cache: Cache) -> Iterator[Measured]:
    """All records in a cache."""
    for parts in map(cache.read, cache.keys()):
        if parts is not None and RECORD in parts:
            yield decode_record(parts)


def schedules_text(chosen: Sequence[ChosenSchedule | None]) -> str:
    """Schedules in a line: the steps of a launch, and the schedule, of each loop."""
    return "; ".join(
        "the model's" if each is None else f"{each.depth} steps, {each.schedule}" for each in chosen
    )
