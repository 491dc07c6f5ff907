"""Why an operation cannot be raised."""

from __future__ import annotations

from xdsl.ir import Operation


class CannotRaiseError(Exception):
    """An operation has a form that cannot be raised. `reason` is a fact and a way out."""

    def __init__(self, op: Operation, reason: str):
        super().__init__(reason)
        self.op, self.reason = op, reason
