"""What the SIMT interpreter finds wrong with a kernel."""

from __future__ import annotations

from xdsl.ir import Operation


class SimtError(Exception):
    """A kernel did something that a GPU would not report: the message names the operation."""

    def __init__(self, op: Operation, text: str):
        super().__init__(f"{describe(op)}: {text}")
        self.op = op


def describe(op: Operation) -> str:
    """The operation, in one line."""
    text = " ".join(str(op).split())
    return text if len(text) <= 160 else f"{text[:157]}..."
