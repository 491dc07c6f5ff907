"""The driver's launches, without a GPU: the kernels of a plan on the buffers of a call."""

from __future__ import annotations

from support.recorder import SCRATCH, buffers_of, launches


def test_an_odd_depth_takes_turns_in_the_programs_buffers():
    on = launches(3, 7, (1, 2))
    assert buffers_of(on) == [("run_d3", 1, 2), ("run_d3", 2, 1), ("run_step", 1, 2)]
    assert not on.copied


def test_an_even_depth_takes_turns_in_the_first_buffer_and_a_copy_of_it():
    on = launches(2, 5, (1, 2))
    assert on.copied == [(1, SCRATCH)]
    expected = [("run_d2", 1, SCRATCH), ("run_d2", SCRATCH, 1), ("run_step", 1, 2)]
    assert buffers_of(on) == expected


def test_with_halos_in_common_any_depth_takes_turns_in_the_programs_buffers():
    on = launches(2, 5, (1, 2), same_halos=True)
    assert on.comparisons == [(1, 2)]
    assert not on.copied
    assert buffers_of(on) == [("run_d2", 1, 2), ("run_d2", 2, 1), ("run_step", 1, 2)]


def test_halos_are_compared_where_kernels_of_several_steps_run():
    assert not launches(3, 1, (1, 2)).comparisons, "a single step"
    assert launches(3, 2, (1, 2)).comparisons == [(1, 2)]
    assert launches(3, 3, (1, 2)).comparisons == [(1, 2)]
    assert launches(3, 3, (1, 2), (5, 6)).comparisons == [(1, 2), (5, 6)]


def test_halos_with_a_promise_are_not_compared():
    apart = launches(2, 5, (1, 2), same_halos=True, halos="apart")
    assert not apart.comparisons and apart.copied == [(1, SCRATCH)]
    common = launches(2, 5, (1, 2), halos="common")
    assert not common.comparisons and not common.copied


def test_a_stream_that_is_captured_is_not_waited_for():
    on = launches(2, 5, (1, 2), same_halos=True, captures=True)
    assert not on.comparisons and on.copied == [(1, SCRATCH)]


def test_every_call_has_its_own_buffers():
    """Launches are prepared once for the same operands, and anew for others."""
    on = launches(3, 7, (1, 2), (5, 6), (1, 2))
    first, second, third = (buffers_of(on)[3 * k : 3 * k + 3] for k in range(3))
    assert second == [("run_d3", 5, 6), ("run_d3", 6, 5), ("run_step", 5, 6)]
    assert first == third != second


def test_a_long_run_repeats_its_launches():
    on = launches(3, 301, (1, 2))
    deep = [(source, target) for name, source, target in buffers_of(on) if name == "run_d3"]
    assert deep == [((1, 2), (2, 1))[k % 2] for k in range(len(deep))]
    assert 3 * len(deep) + len(on.launched) - len(deep) == 301
