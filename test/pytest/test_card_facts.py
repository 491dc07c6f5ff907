"""
The facts of a GPU at hand: the driver's, and a device copy measured once and kept for the card.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.driver import BookKeeper
from support.gpu_programs import program
from support.ranks import refused
from support.thread_ranks import ThreadPeers, on_threads
from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.target import target_named
from timetile.runtime.cache.store import Cache
from timetile.runtime.cli import doctor
from timetile.runtime.device import card_facts, gpu
from timetile.runtime.program.ranked_program import text_of_first
from timetile.runtime.program.targets import ChosenTarget, name_of_target, target_of_gpu
from timetile.runtime.ranks.peers import RankError

pytestmark = pytest.mark.usefixtures("cache_of_file")


@pytest.fixture
def measuring(driver: BookKeeper, monkeypatch: pytest.MonkeyPatch) -> Iterator[BookKeeper]:
    """A driver whose copies are measured, in a process that measured none."""
    monkeypatch.setenv(card_facts.SWITCH, "1")
    monkeypatch.setattr(card_facts, "MEASURING_SECONDS", 0.0)
    card_facts.MEASURED.clear()
    driver.name = "NVIDIA H200"
    yield driver
    card_facts.MEASURED.clear()


def kept_copies(cache: Cache) -> list[bytes]:
    """The kept speeds of copies: one number each, where clocks are two."""
    keys = cache.keys()
    texts = [parts[card_facts.KEPT] for key in keys if (parts := cache.read(key)) is not None]
    return [text for text in texts if len(text.split()) == 1]


def test_a_copy_is_measured_once_for_a_card_and_kept(measuring: BookKeeper, cache: Cache):
    measuring.copy_tb_per_s = 3.14
    assert target_of_gpu(None, 0, cache) == ChosenTarget("sm_90", "h200+copy=3.1")
    made = len(measuring.copied)
    assert made >= 3 and set(measuring.copied) == {4 * measuring.l2_bytes}
    assert not measuring.left
    measuring.copy_tb_per_s = 2.0
    assert target_of_gpu(None, 1, cache).part == "h200+copy=3.1"
    card_facts.MEASURED.clear()
    assert target_of_gpu(None, 0, cache).part == "h200+copy=3.1"
    assert len(measuring.copied) == made
    # Another card is measured.
    measuring.name = "NVIDIA H100 PCIe"
    assert "+copy=2+" in f"{target_of_gpu(None, 0, cache).part}+"
    assert len(measuring.copied) == 2 * made


def test_a_copy_near_the_tables_speed_is_the_tables(measuring: BookKeeper, cache: Cache):
    measuring.copy_tb_per_s = 4.15
    assert target_of_gpu(None, 0, cache) == ChosenTarget("sm_90")


def test_nothing_is_measured_where_measuring_is_off_or_a_part_is_named(
    measuring: BookKeeper, cache: Cache, monkeypatch: pytest.MonkeyPatch
):
    measuring.copy_tb_per_s = 1.0
    assert target_of_gpu("h100-sxm", 0, cache) == ChosenTarget("sm_90", "h100-sxm")
    assert target_of_gpu("h200+copy=2", 0, cache) == ChosenTarget("sm_90", "h200+copy=2")
    monkeypatch.setenv(card_facts.SWITCH, "0")
    assert target_of_gpu(None, 0, cache) == ChosenTarget("sm_90")
    assert not measuring.copied and not kept_copies(cache)


def test_a_full_memory_leaves_the_table_and_keeps_nothing(
    measuring: BookKeeper, cache: Cache, monkeypatch: pytest.MonkeyPatch
):
    def full(there: object, size: int) -> int:
        raise MemoryError(f"{size} bytes of device memory")

    monkeypatch.setattr(gpu.Device, "allocate", full)
    assert target_of_gpu(None, 0, cache) == ChosenTarget("sm_90")
    assert not kept_copies(cache) and not measuring.left


def test_an_unknown_gpu_is_described_by_the_driver(measuring: BookKeeper, cache: Cache):
    measuring.name, measuring.multiprocessors = "A GPU of tomorrow", 78
    measuring.kilohertz, measuring.l2_bytes = 2_400_000, 30 << 20
    measuring.memory_bits, measuring.shared_bytes = 5120, 101376
    measuring.copy_tb_per_s = 3.0
    chosen = target_of_gpu(None, 0, cache)
    assert chosen == ChosenTarget(
        "sm_90", "sm_90+clock=2.34+memory=4+copy=3+l2=31457280+shared=102400+block=101376", 78
    )
    target = target_named(chosen.part or "", chosen.multiprocessors)
    assert target.multiprocessors == 78 and target.part.title == "GPU of sm_90"
    assert target.isa.shared_per_block == 101376 and target.clusters(2) == 39


def test_the_clock_of_a_known_part_counts_where_it_is_lower(measuring: BookKeeper):
    measuring.kilohertz = 2_500_000
    assert target_of_gpu(None, 0) == ChosenTarget("sm_90")
    measuring.kilohertz = 1_200_000
    assert target_of_gpu(None, 0) == ChosenTarget("sm_90", "h200+clock=1.17")


def test_programs_of_a_card_with_other_facts_have_other_keys(measuring: BookKeeper):
    usual = program().kernels.options
    measuring.copy_tb_per_s = 2.5
    card_facts.MEASURED.clear()
    slow = program(cache=False).kernels.options
    assert usual.part is None and slow.part == "h200+copy=2.5"
    assert usual.key() != slow.key()


def test_doctor_tells_the_numbers_behind_schedules(
    measuring: BookKeeper, own_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    text = (
        "sm_90: 132 multiprocessors, 1.93 GHz, 60 MiB of L2, memory of 4.8 TB/s, copies of 4.23 "
        "TB/s {}"
    )
    assert doctor.part_text(0) == text.format("(4.2 measured)")
    card_facts.MEASURED.clear()
    monkeypatch.setenv(card_facts.SWITCH, "0")
    assert doctor.part_text(0) == text.format("assumed")


# Ranks.


def test_a_target_has_one_name_with_all_facts(measuring: BookKeeper):
    measuring.name, measuring.multiprocessors, measuring.copy_tb_per_s = "Another", 78, 2.5
    chosen = target_of_gpu(None, 0)
    name = name_of_target(chosen)
    assert name == "sm_90+multiprocessors=78+copy=2.5"
    again = target_of_gpu(name, 1)
    assert target_named(again.part or again.arch, again.multiprocessors).part.multiprocessors == 78
    assert name_of_target(again) == name
    measuring.name, measuring.multiprocessors = "NVIDIA H200", 132
    assert name_of_target(ChosenTarget("sm_90")) == "h200+multiprocessors=132"
    assert target_named("h200+multiprocessors=132").parameters == target_named("h200").parameters


def test_ranks_take_the_target_of_rank_0():
    names = on_threads(3, lambda peers: text_of_first(peers, lambda: f"h200+copy={peers.rank + 1}"))
    assert names == ["h200+copy=1"] * 3


def test_a_rank_without_a_target_stops_all_ranks():
    def own(peers: ThreadPeers) -> str:
        if peers.rank == 1:
            raise CompileError("the GPU is too old")
        return "h200"

    errors = refused(3, lambda peers: text_of_first(peers, lambda: own(peers)))
    assert isinstance(errors[1], CompileError)
    for rank in (0, 2):
        assert isinstance(errors[rank], RankError)
        assert str(errors[rank]) == "nothing has run, as rank 1 of 3 cannot: the GPU is too old"
