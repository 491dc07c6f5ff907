"""
Rims through NCCL, with calls of the mind: no rank waits without end, and after a failure NCCL's
work is given up.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from timetile.dialects.boxes import CellBox
from timetile.runtime.ranks import nccl_link
from timetile.runtime.ranks.nccl_link import IN_PROGRESS, SUCCESS, NcclLink
from timetile.runtime.ranks.peers import TIMEOUT_VARIABLE, RankError, failed
from timetile.runtime.ranks.rims import box_copy
from timetile.runtime.ranks.sites import RimMessage


class Comm:
    """A communicator: `states` are the answers to questions for its state, the last for ever."""

    ptr = 1

    def __init__(self, states: list[int]):
        self.states, self.put = states, list[tuple[Any, ...]]()
        self.aborted = 0

    def get_async_error(self) -> int:
        """The next state."""
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def get_last_error(self) -> str:
        """Text."""
        return "a cable is out"

    def abort(self) -> None:
        """Note the end."""
        self.aborted += 1


class Peers:
    """Rank 0 of three; `failure` is known of another."""

    rank, count = 0, 3
    failure: RankError | None = None

    def look(self) -> None:
        """Raise what is known."""
        if self.failure is not None:
            raise self.failure


def is_passed(_: object) -> bool:
    """All work is done at once."""
    return True


class OneSite:
    """A site with buffers of numbers as pointers."""

    stream = 5

    def __init__(self) -> None:
        self.device = SimpleNamespace(current=nullcontext, has_passed=is_passed)
        self.pulled = list[tuple[Any, Any]]()

    def mark(self) -> None:
        """A mark."""

    def new(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A room at 1000."""
        return SimpleNamespace(pointer=1000)

    def pull(self, source: Any, target: Any, copy: Any) -> None:
        """Note a copy."""
        self.pulled.append((source.pointer, target.pointer))


@pytest.fixture
def comm(monkeypatch: pytest.MonkeyPatch) -> Comm:
    """NCCL's package, with one communicator."""
    made = Comm([SUCCESS])

    def begun(*_: object) -> Comm:
        return made

    def noted(way: str) -> Callable[..., None]:
        def call(*given: Any) -> None:
            pointer, size, _, rank, _, stream = given
            made.put.append((way, pointer, size, rank, stream))

        return call

    core = SimpleNamespace(
        NCCLConfig=SimpleNamespace,
        UniqueId=SimpleNamespace(from_bytes=bytes),
        Communicator=SimpleNamespace(init=begun),
        group=nullcontext,
        UINT8=1,
    )
    calls = SimpleNamespace(send=noted("send"), recv=noted("recv"), Comm=int)
    monkeypatch.setattr(nccl_link, "nccl", lambda: core)
    monkeypatch.setattr(nccl_link, "nccl_calls", lambda: calls)
    monkeypatch.setattr(nccl_link, "IMPATIENT_POLLS", 2)
    monkeypatch.setenv(TIMEOUT_VARIABLE, "0.05")
    return made


def link(peers: Any, site: Any) -> NcclLink:
    """A link of a rank."""
    return NcclLink(site, peers, "00")


def rims(buffer: Any) -> tuple[list[RimMessage], list[RimMessage]]:
    """Two whole rows of doubles for rank 1, and a column from rank 2."""
    field, rows, column = CellBox((0, 0), (9, 7)), CellBox((2, 0), (4, 7)), CellBox((0, 6), (9, 7))
    sent = RimMessage(1, buffer, box_copy(field, rows, rows, rows, 8))
    return [sent], [RimMessage(2, buffer, box_copy(column, column, field, column, 8))]


def test_whole_rows_go_from_their_field_and_columns_through_a_room(comm: Comm):
    site, buffer = OneSite(), SimpleNamespace(pointer=100)
    link(Peers(), site).exchange(*rims(buffer))
    assert comm.put == [
        ("send", 100 + 2 * 7 * 8, 2 * 7 * 8, 1, 5), ("recv", 1000, 9 * 8, 2, 5)
    ]  # fmt: skip
    assert site.pulled == [(1000, 100)] and not comm.aborted


def test_a_failure_of_another_rank_ends_the_wait(comm: Comm):
    peers, site = Peers(), OneSite()
    made = link(peers, site)
    comm.states, peers.failure = [IN_PROGRESS], failed(2, 3, "no more cells")
    with pytest.raises(RankError, match=r"rank 2 of 3 failed: no more cells"):
        made.exchange(*rims(SimpleNamespace(pointer=100)))
    assert comm.aborted == 1


def test_silent_ranks_are_named_and_errors_are_told(comm: Comm):
    made = link(Peers(), OneSite())
    comm.states = [IN_PROGRESS]
    with pytest.raises(RankError, match=r"ranks 1, 2 of 3 sent nothing for 0\.05 s"):
        made.exchange(*rims(SimpleNamespace(pointer=100)))
    comm.states = [IN_PROGRESS, 6]
    with pytest.raises(RuntimeError, match="NCCL reports: a cable is out"):
        link(Peers(), OneSite())
    assert comm.aborted == 2
