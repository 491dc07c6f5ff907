"""Where calls of operators ran: on timetile, or in Devito's own C, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RanOn:
    """
    Where a call ran. `reason` is the sentence of the warning, empty for a call on timetile.
    `remarks` say what keeps a call on timetile slow.
    """

    reason: str = ""
    remarks: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_timetile(self) -> bool:
        """Whether the call ran on timetile."""
        return not self.reason

    def __str__(self) -> str:
        return f"Devito's own C: {self.reason}" if self.reason else "timetile"


COUNTS: Counter[RanOn] = Counter()
"""The calls of the process."""


def call_counts() -> dict[str, int]:
    """
    The calls of operators in the process so far, counted by where they ran: `"timetile"`, or
    `"Devito's own C: "` and the reason. The commonest come first.
    """
    return {str(ran): count for ran, count in COUNTS.most_common()}
