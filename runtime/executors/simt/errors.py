"""Errors of a kernel found by the SIMT interpreter."""

from __future__ import annotations

from xdsl.ir import Operation


class SimtError(Exception):
    """
    A kernel did something wrong without a report by a GPU. The message names the operation or the
    instruction, if any.
    """

    def __init__(self, op: Operation | str | None, text: str):
        super().__init__(text if op is None else f"{describe(op)}: {text}")
        self.op = op


def describe(op: Operation | str) -> str:
    """The operation or the instruction, in one line."""
    text = " ".join(str(op).split())
    return text if len(text) <= 160 else f"{text[:157]}..."
