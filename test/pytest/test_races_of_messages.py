"""
Faults of messages between blocks, and of the barriers of a tile, found by the SIMT interpreter:
messages nobody sends, messages overwritten before a take, accesses without order by a message.
Kernels are written by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from support.kernels import BARRIER, MESSAGE_WORDS, Case, by_threads_below, check

BUFFER = """
%three = arith.constant 3 : i32
%start = arith.muli %b, %width : i32
%here = arith.addi %start, %t : i32
%mine = arith.muli %here, %two : i32
%beside = arith.xori %b, %one : i32
%start_beside = arith.muli %beside, %width : i32
%there = arith.addi %start_beside, %t : i32
%theirs = arith.muli %there, %two : i32
"""
"""
Two blocks: the words for messages to a thread from the thread of equal number in the other block.
"""


def post(number: str, offset: int = 0) -> str:
    return f"simt.post %x to %buffer[%theirs + {offset}] number %{number}"


def take(number: str, offset: int = 0, result: str = "y") -> str:
    return f"%{result} = simt.take %buffer[%mine + {offset}] number %{number} : f64"


def tile_barrier(number: str = "one", blocks: int = 2) -> str:
    return f"simt.tile_barrier %buffer[] number %{number} blocks {blocks}"


def two_blocks(name: str, wrong: Sequence[str], message: str, right: Sequence[str]) -> Case:
    """A case of two blocks that send each other messages."""
    return Case(
        name,
        "\n".join((BUFFER, *wrong)),
        message,
        "\n".join((BUFFER, *right)),
        grid=2,
        blocks_per_tile=2,
    )


ROUNDS = (post("one"), take("one"), post("two", 256), take("two", 256, "z"))
"""
Two messages each way, in two slots: a block with the second message knows of the take of its own
first message.
"""

PLAIN_POST = "simt.post %x to %buffer[%theirs + 0]"
PLAIN_TAKE = "%y = simt.take %buffer[%mine + 0] : f64"
"""Accesses ordered by barriers have no number."""

STORE_HERE = "simt.store %x to %f[%here + 0]"
LOAD_THERE = "%z = simt.load %f[%there + 0] : f64"

IF_FIRST = "%is_first = arith.cmpi eq, %b, %zero : i32"


def branch(first: Sequence[str], second: Sequence[str]) -> str:
    """The code of the first block, and of the second."""
    return f"scf.if %is_first {{ {' '.join(first)} }} else {{ {' '.join(second)} }}"


NUMBER = "%n = simt.launches_ended %buffer : i32"
LATER = "%later = simt.launches_ended %buffer : i32"
END = "simt.end_launch %buffer number %n"


def by_first(body: str) -> Sequence[str]:
    """The body, run by the first thread of a block."""
    return (by_threads_below(1, body),)


MESSAGES = [
    two_blocks(
        "a-message-that-nobody-sends",
        (take("one"),),
        f"{take('one')}: waits for message 1, which nobody sends",
        (post("one"), take("one")),
    ),
    two_blocks(
        "each-block-waits-for-the-other-first",
        (take("one"), post("one")),
        f"{take('one')}: waits for message 1, which nobody sends",
        (post("one"), take("one")),
    ),
    two_blocks(
        "both-sides-of-a-branch-wait-first",
        (IF_FIRST, branch((take("one"), post("one")), (take("one"), post("one")))),
        f"{take('one')}: waits for message 1, which nobody sends",
        (IF_FIRST, branch((take("one"), post("one")), (post("one"), take("one")))),
    ),
    two_blocks(
        "a-later-message-is-there",
        (post("two"), take("one")),
        f"{take('one')}: waits for message 1, and message 2 is there",
        (post("two"), take("two")),
    ),
    two_blocks(
        "over-a-message-that-nobody-took",
        (post("one"), post("two")),
        f"{post('two')}: overwrites message 1, which no thread has taken",
        (post("one"), post("two", 256)),
    ),
    two_blocks(
        "a-slot-too-few",
        (post("one"), take("one"), post("two")),
        f"{post('two')}: overwrites message 1, and cannot know that it was taken",
        (*ROUNDS, post("three")),
    ),
    two_blocks(
        "over-the-message-before-the-first",
        (take("zero"), post("one")),
        f"{post('one')}: overwrites message 0, and cannot know that it was taken",
        (take("zero"), post("one", 256), take("one", 256, "z"), post("two")),
    ),
    two_blocks(
        "heard-of-by-another-lane",
        (
            *ROUNDS[:2],
            "%swapped = arith.xori %theirs, %two : i32",
            "simt.post %x to %buffer[%swapped + 256] number %two",
            *(take("two", 256, "z"), post("three")),
        ),
        f"{post('three')}: overwrites message 1, and cannot know that it was taken",
        (*ROUNDS, post("three")),
    ),
    two_blocks(
        "two-write-one-message",
        ("simt.post %x to %buffer[%double + 0] number %one",),
        "simt.post %x to %buffer[%double + 0] number %one: two threads write one message",
        (post("one"),),
    ),
    two_blocks(
        "a-message-beyond-the-words",
        (post("one", 384),),
        f"{post('one', 384)}: a message at word 512 of a buffer of {MESSAGE_WORDS}",
        (post("one", 256),),
    ),
    two_blocks(
        "half-a-message-of-eight-bytes",
        (take("zero", 1),),
        f"{take('zero', 1)}: a message at word 1 of a buffer of {MESSAGE_WORDS}",
        ("%y = simt.take %buffer[%mine + 1] number %zero : f32",),
    ),
    two_blocks(
        "a-message-for-some-lanes",
        (by_threads_below(40, take("zero")),),
        f"{take('zero')}: only some lanes of a warp reach it",
        (by_threads_below(32, take("zero")),),
    ),
    two_blocks(
        "the-message-that-nobody-sends-is-unset",
        (take("zero"), "simt.store %y to %f[%here + 0]"),
        "simt.store %y to %f[%here + 0]: stores a value that was never set to cell 0",
        (post("one"), take("one"), "simt.store %y to %f[%here + 0]"),
    ),
    two_blocks(
        "a-message-orders-nothing-else",
        (STORE_HERE, post("one"), take("one"), LOAD_THERE),
        f"{LOAD_THERE}: reads what another thread wrote, cell 64, without a synchronisation "
        f"between; the other access is {STORE_HERE}",
        (STORE_HERE, tile_barrier(), LOAD_THERE),
    ),
    two_blocks(
        "a-cell-that-no-barrier-publishes",
        (PLAIN_POST, BARRIER, PLAIN_TAKE),
        f"{PLAIN_TAKE}: reads what another thread wrote, cell 0, without a synchronisation "
        f"between; the other access is {PLAIN_POST}",
        (PLAIN_POST, tile_barrier(), PLAIN_TAKE),
    ),
    two_blocks(
        "over-a-cell-that-others-still-read",
        (PLAIN_POST, tile_barrier(), PLAIN_TAKE, PLAIN_POST),
        f"{PLAIN_POST}: overwrites what another thread may still read, cell 128, without a "
        f"synchronisation between; the other access is {PLAIN_TAKE}",
        (PLAIN_POST, tile_barrier(), PLAIN_TAKE, tile_barrier("two"), PLAIN_POST),
    ),
    two_blocks(
        "a-tile-barrier-for-one-block",
        (IF_FIRST, f"scf.if %is_first {{ {tile_barrier()} }}"),
        f"{tile_barrier()}: only some blocks of a tile reach it",
        (IF_FIRST, branch((tile_barrier(),), (tile_barrier(),))),
    ),
    two_blocks(
        "a-tile-barrier-twice",
        (tile_barrier(), tile_barrier()),
        f"{tile_barrier()}: the barriers of a tile are not numbered one after the other",
        (tile_barrier(), tile_barrier("two")),
    ),
    two_blocks(
        "a-tile-barrier-of-more-blocks",
        (tile_barrier(blocks=3),),
        f"{tile_barrier(blocks=3)}: a tile has 4 warps",
        (tile_barrier(),),
    ),
    two_blocks(
        "a-launch-that-ends-before-all-have-its-number",
        (IF_FIRST, branch((NUMBER, *by_first(END)), ())),
        f"{END}: ends a launch whose number block 1 does not know",
        (NUMBER, IF_FIRST, branch(by_first(END), ())),
    ),
    two_blocks(
        "a-launch-that-two-threads-end",
        (NUMBER, END),
        f"{END}: ends a launch that another thread ends",
        (NUMBER, IF_FIRST, branch(by_first(END), ())),
    ),
    two_blocks(
        "the-number-of-a-launch-that-has-ended",
        (NUMBER, IF_FIRST, branch(by_first(END), ()), LATER),
        f"{LATER}: counts the launches before one that has ended",
        (NUMBER, LATER, IF_FIRST, branch(by_first(END), ())),
    ),
]


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case.name)
def test_races_of_messages_are_found_and_correct_twins_pass(case: Case):
    check(case)
