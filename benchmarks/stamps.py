"""
Times of all launches on several GPUs, by stamps of the global timer in the kernels of meetings.

Kernels of meetings and of exchanges note the times of begin and end, and no other work is put on
the streams. Between the end of a meeting and the begin of the next lies a launch. Parts without
exchanges meet themselves. Clocks of two GPUs may differ, and both leave a meeting at one time, but
for the latency of the last count.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from timetile.runtime.ranks import gpu_meetings
from timetile.runtime.ranks.gpu_meetings import LINE, GpuMeetings
from timetile.runtime.ranks.moved_rims import MovedRims

SLOTS = 4096
"""Meetings whose times are kept."""

PLACE = 8
"""The bytes from a count to the address of the kept times."""

REGISTERS = "  .reg .u64 %stamps, %start;"

BEGIN = "  mov.u64 %start, %globaltimer;"

LOAD = f"  ld.volatile.global.u64 %stamps, [COUNT+{PLACE}];"


def end(name: str) -> str:
    """Note the times of a meeting, by a thread behind the wait for a neighbour."""
    return f"""
  setp.eq.u64 %late, %stamps, 0;
  @%late bra {name}_unnoted;
  and.b32 %seen, %count, {SLOTS - 1};
  mad.wide.u32 %more, %seen, 16, %stamps;
  mov.u64 %now, %globaltimer;
  st.global.v2.u64 [%more], {{%start, %now}};
{name}_unnoted:"""


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """A text with other texts in place of some, each found once."""
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def stamped_meeting(text: str) -> str:
    """The kernel of a meeting, with notes of times."""
    rows, counted = "  mov.u64 %row, rows;", "  add.u32 %count, %count, 1;"
    return changed(
        text,
        (rows, f"{REGISTERS}\n  .reg .u64 %more;\n{rows}"),
        (counted, "\n".join((counted, LOAD.replace("COUNT", "%own"), BEGIN))),
        ("\n  ret;", f"{end('here')}\n  ret;"),
    )


def stamped_exchange(text: str) -> str:
    """
    The kernel of an exchange, with notes of the times of both meetings: by the first block, and by
    the last block.
    """
    rows, counted = "  mov.u64 %row, met;", "  ld.volatile.global.u32 %count, [%place];"
    second = "  st.volatile.global.u32 [%place], %count;"
    return changed(
        text,
        (rows, f"{REGISTERS}\n{rows}"),
        (counted, "\n".join((counted, LOAD.replace("COUNT", "%place"), BEGIN))),
        ("  bra begun;\nothers:", f"{end('first')}\n  bra begun;\nothers:"),
        (second, f"{BEGIN}\n{second}"),
        ("done_all:\n", f"{end('second')}\ndone_all:\n"),
    )


@contextmanager
def stamped_kernels() -> Generator[None]:
    """Meetings made in the block note their times."""
    meeting = patch.object(gpu_meetings, "TEXT", stamped_meeting(gpu_meetings.TEXT))
    exchange = patch.object(
        gpu_meetings, "EXCHANGE_TEXT", stamped_exchange(gpu_meetings.EXCHANGE_TEXT)
    )
    with meeting, exchange:
        yield


class Stamps:
    """The kept times of the GPUs of meetings."""

    def __init__(self, meetings: GpuMeetings):
        self.meetings, self.pointers = meetings, list[int]()
        for side in meetings.sides:
            with side.gpu.current():
                self.pointers.append(side.gpu.allocate(16 * SLOTS))
                for other in range(len(meetings.sides)):
                    place = side.words[side.number] + LINE * other + PLACE
                    side.gpu.upload(place, np.array([self.pointers[-1]], np.uint64))
                side.gpu.synchronize(0)

    def clear(self) -> None:
        """Forget all times."""
        for side, pointer in zip(self.meetings.sides, self.pointers):
            with side.gpu.current():
                side.gpu.upload(pointer, np.zeros((SLOTS, 2), np.uint64))
                side.gpu.synchronize(0)

    def noted(self) -> list[Any]:
        """The begins and ends of all meetings of each GPU, in nanoseconds, in order."""
        found: list[Any] = []
        for side, pointer in zip(self.meetings.sides, self.pointers):
            times = np.zeros((SLOTS, 2), np.uint64)
            with side.gpu.current():
                side.gpu.download(times, pointer)
            known = times[times[:, 1] > 0].astype(np.int64)
            found.append(known[np.argsort(known[:, 1])])
        return found


@dataclass(frozen=True)
class Launches:
    """The launches of a GPU: seconds of launches, and of waits behind, in microseconds."""

    launches: Any
    waits: Any

    @staticmethod
    def of(times: Any) -> Launches:
        """The launches between the meetings of a GPU."""
        return Launches((times[1:, 0] - times[:-1, 1]) / 1e3, (times[1:, 1] - times[1:, 0]) / 1e3)

    def line(self) -> str:
        """The mean, and the spread, of launches and waits."""
        parts = [
            f"{name} {np.mean(each):.2f} us (tenths {np.percentile(each, 10):.2f} to "
            f"{np.percentile(each, 90):.2f})"
            for name, each in (("launch", self.launches), ("wait", self.waits))
        ]
        return ", ".join(parts)


def lines_of(noted: Sequence[Any]) -> list[str]:
    """The launches of each GPU, and the slower one of each launch."""
    count = min(len(each) for each in noted)
    if count < 4:
        return [f"    {count} meetings"]
    found = [Launches.of(each[-count:]) for each in noted]
    lines = [f"    GPU {number}: {each.line()}" for number, each in enumerate(found)]
    both = np.array([each.launches for each in found])
    mean = both.mean(axis=1).max()
    turn = np.mean([each.launches + each.waits for each in found])
    return [
        *lines,
        f"    slower GPU on average {mean:.2f} us, slower of each launch "
        f"{both.max(axis=0).mean():.2f} us, turn {turn:.2f} us, {count - 1} launches",
    ]


def meet_themselves(rims: MovedRims, *_: Any) -> None:
    """Each part meets itself, and waits for no other part."""
    for number in range(len(rims.sites)):
        meet_itself(rims, number)


def meet_itself(rims: MovedRims, number: int) -> None:
    """A part meets itself."""
    if rims.by_counts and isinstance(rims.meetings, GpuMeetings):
        rims.meetings.sides[number].meet((number,))


MOST_RAW = 200
"""Meetings whose times are written."""


def keep_raw(path: Path | None, name: str, noted: Sequence[Any]) -> None:
    """Add the times of the first meetings of each GPU to a file, in ns from the first."""
    if path is None:
        return
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    first = min((int(each[0, 0]) for each in noted if len(each)), default=0)
    known[name] = [(each[:MOST_RAW] - first).tolist() for each in noted]
    path.write_text(json.dumps(known))
