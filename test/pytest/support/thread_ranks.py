"""Ranks as threads of one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from timetile.runtime.ranks.peers import Bytes, RankError, failed, missing

Result = TypeVar("Result")

POLL_SECONDS = 0.2
"""Seconds between two looks at the failures of other ranks."""


class Post:
    """The messages between the threads: a place for each pair of ranks."""

    def __init__(self, count: int, timeout: float):
        self.count, self.timeout = count, timeout
        self.changed = threading.Condition()
        self.messages: dict[tuple[int, int], list[Bytes]] = {}
        self.failure: RankError | None = None


class ThreadPeers:
    """The ranks of threads, as seen by a rank."""

    def __init__(self, post: Post, rank: int):
        self.post, self.rank, self.count = post, rank, post.count

    @property
    def ranks_beside(self) -> list[int]:
        """All ranks."""
        return list(range(self.count))

    def exchange(self, sent: Mapping[int, Bytes], received: Mapping[int, Bytes]) -> None:
        """Send and receive messages; see `Peers`."""
        post = self.post
        with post.changed:
            for rank, message in sent.items():
                post.messages.setdefault((self.rank, rank), []).append(message.copy())
            post.changed.notify_all()
            waiting, end = set(received), time.monotonic() + post.timeout
            while waiting:
                for rank in sorted(waiting):
                    if found := post.messages.get((rank, self.rank)):
                        received[rank][:] = found.pop(0)
                        waiting.discard(rank)
                if not waiting:
                    return
                if post.failure is not None:
                    raise post.failure
                if time.monotonic() > end:
                    raise missing(waiting, self.count, post.timeout)
                post.changed.wait(POLL_SECONDS)

    def look(self) -> None:
        """Raise the failure of another rank."""
        if self.post.failure is not None:
            raise self.post.failure

    def tell(self, cause: str) -> None:
        """Tell all other ranks of a failure here."""
        with self.post.changed:
            self.post.failure = failed(self.rank, self.count, cause)
            self.post.changed.notify_all()


def on_threads(
    count: int, run: Callable[[ThreadPeers], Result], timeout: float = 60.0
) -> list[Result]:
    """
    The results of a function on each of several ranks, run by threads. Raises the error of the
    first failed rank.
    """
    post = Post(count, timeout)
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}

    def work(rank: int) -> None:
        try:
            results[rank] = run(ThreadPeers(post, rank))
        except BaseException as error:
            errors[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        own = [error for error in errors.values() if not isinstance(error, RankError)]
        raise (own or [errors[min(errors)]])[0]
    return [results[rank] for rank in range(count)]
