"""
The ranks of a run, as seen by a rank: bytes to and from other ranks, with a limit on waiting.

A failing rank tells the others before raising; a rank waiting in vain for another raises after
`timeout` seconds. A run therefore ends on all ranks.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
"""A message: contiguous bytes."""

TIMEOUT_VARIABLE = "TIMETILE_RANKS_TIMEOUT"
DEFAULT_TIMEOUT = 300.0
"""Seconds for a rank to wait for another."""

WORD_BYTES = 2048
"""Bytes of a message sent by `words_of_all`."""


class RankError(RuntimeError):
    """A run on several ranks failed; the message names the rank and the cause."""


class Peers(Protocol):
    """The ranks of a run. `rank` is the number of the own rank, below `count`."""

    rank: int
    count: int

    @property
    def ranks_beside(self) -> list[int]:
        """The ranks on the machine, the own rank among them, in order."""
        ...

    def exchange(self, sent: Mapping[int, Bytes], received: Mapping[int, Bytes]) -> None:
        """
        Send a message to each rank of `sent`, and fill a message of known length from each rank of
        `received`. Raises RankError if another rank failed, or sends nothing in time.
        """
        ...

    def look(self) -> None:
        """Raise RankError if another rank is known to have failed."""
        ...

    def tell(self, cause: str) -> None:
        """Tell all other ranks of a failure here; exchanges of the others raise RankError."""
        ...


def waiting_limit(asked: float | None = None) -> float:
    """
    The seconds for a rank to wait for another: as asked for, or as in TIMETILE_RANKS_TIMEOUT.
    Raises ValueError for no positive number.
    """
    if asked is not None:
        return float(asked)
    said = os.environ.get(TIMEOUT_VARIABLE)
    if not said:
        return DEFAULT_TIMEOUT
    try:
        seconds = float(said)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(
            f"{TIMEOUT_VARIABLE} is a number of seconds above 0, got {said!r}; unset it, or set it "
            "to one"
        )
    return seconds


def failed(rank: int, count: int, cause: str) -> RankError:
    """The error of a run in which a rank failed."""
    return RankError(f"rank {rank} of {count} failed: {cause}")


def died(rank: int, count: int, process: str) -> RankError:
    """The error of a run in which the process of a rank ended."""
    return RankError(f"rank {rank} of {count} died: {process} has ended")


def missing(ranks: Iterable[int], count: int, seconds: float) -> RankError:
    """The error of a run in which ranks sent nothing in time."""
    names = ", ".join(map(str, sorted(ranks)))
    noun = "ranks" if "," in names else "rank"
    return RankError(
        f"{noun} {names} of {count} sent nothing for {seconds:g} s: the process died, hangs, or "
        f"computes longer; {TIMEOUT_VARIABLE} sets the seconds to wait"
    )


def as_word(text: str) -> Bytes:
    """A text as a message of fixed length; a longer text loses the end."""
    said = text.encode()[: WORD_BYTES - 1]
    word = np.zeros(WORD_BYTES, np.uint8)
    word[: len(said)] = np.frombuffer(said, np.uint8)
    return word


def text_of_word(word: Bytes) -> str:
    """The text of a message of fixed length."""
    return word.tobytes().rstrip(b"\0").decode(errors="ignore")


def words_of_all(peers: Peers, text: str) -> list[str]:
    """The texts of all ranks, in order: each rank gives a text and waits for the others."""
    others = [rank for rank in range(peers.count) if rank != peers.rank]
    received = {rank: np.zeros(WORD_BYTES, np.uint8) for rank in others}
    peers.exchange({rank: as_word(text) for rank in others}, received)
    words = {**received, peers.rank: as_word(text)}
    return [text_of_word(words[rank]) for rank in range(peers.count)]


def digest_of(*parts: bytes | str) -> str:
    """A short digest of some texts."""
    made = hashlib.blake2b(digest_size=8)
    for part in parts:
        made.update(part.encode() if isinstance(part, str) else part)
        made.update(b"\0")
    return made.hexdigest()


def as_bytes(array: NDArray[Any]) -> Bytes:
    """The bytes of an array in row-major order, copied unless contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
