"""Mistakes of users of the command line."""

from __future__ import annotations


class UsageError(Exception):
    """A request that cannot be met. The message is one sentence: a fact and a way out."""
