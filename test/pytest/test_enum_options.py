"""Options of passes that are words: members of enumerations, from pipelines and from Python."""

from __future__ import annotations

from typing import Any

import pytest

from timetile.dialects.tile import Published, Sync, TileLevel
from timetile.passes.enum_options import enumerations
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass
from timetile.runtime.loading.plugins import parsed_passes


def test_words_of_a_pipeline_are_members_of_enumerations():
    (tiling, streaming) = parsed_passes(
        "device-tiling{tile=block cells=4},register-streaming{what=edges sync=mbarrier delay=2}"
    )
    assert isinstance(tiling, DeviceTilingPass) and tiling.tile is TileLevel.BLOCK
    assert isinstance(streaming, RegisterStreamingPass)
    assert (streaming.what, streaming.sync) == (Published.EDGES, Sync.MBARRIER)
    assert str(streaming) == 'register-streaming{delay=2 what="edges" sync="mbarrier"}'


def test_words_from_python_are_members_of_enumerations():
    words: dict[str, Any] = {"tile": "cluster"}
    assert DeviceTilingPass(**words).tile is TileLevel.CLUSTER


@pytest.mark.parametrize(
    ("pipeline", "sentence"),
    [
        (
            "device-tiling{tile=wrap}",
            "device-tiling: tile is one of warp, block, cluster, device, got wrap",
        ),
        (
            "split-sums{form=colums}",
            "split-sums: form is one of none, rows, halves, lanes, got colums",
        ),
        ("peel-boundaries{guards=3}", "peel-boundaries: guards is one of rim, all, got 3"),
    ],
)
def test_another_word_is_refused_with_the_words_there_are(pipeline: str, sentence: str):
    with pytest.raises(ValueError) as refusal:
        parsed_passes(pipeline)
    assert str(refusal.value) == sentence


def test_options_without_an_enumeration_are_left_alone():
    assert set(enumerations(DeviceTilingPass)) == {"tile"}
