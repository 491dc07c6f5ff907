"""What a user of the command line can get wrong."""

from __future__ import annotations


class UsageError(Exception):
    """What was asked for cannot be done; the message is one sentence, a fact and a way out."""
