"""What the SIMT interpreter finds wrong with a kernel."""

from __future__ import annotations

from xdsl.ir import Operation


class SimtError(Exception):
    """
    A kernel did something that a GPU would not report: the message names the operation, or the instruction, where it
    is about one.
    """

    def __init__(self, op: Operation | str | None, text: str):
        super().__init__(text if op is None else f"{describe(op)}: {text}")
        self.op = op


def describe(op: Operation | str) -> str:
    """The operation or the instruction, in one line."""
    text = " ".join(str(op).split())
    return text if len(text) <= 160 else f"{text[:157]}..."
