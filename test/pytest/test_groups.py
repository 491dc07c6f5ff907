"""Tests of a file or of a group run on one worker; workers tell results, and all failures."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from xdsl.ir import Attribute, Operation, SSAValue

from support.command_line import HEAT
from support.groups import FEW, group_of, in_whole_files
from support.known_ptx import forms_of
from support.plain_classes import ByBases, derived
from support.quick_ir import WALK, ByPlace
from support.reports import is_needed
from support.sizes import is_nightly
from timetile.runtime.loading.modules import parsed

MARKED = {
    "the only mark": 'pytestmark = pytest.mark.xdist_group("plates")\n',
    "one of several marks": (
        'pytestmark = [\n    pytest.mark.covering,\n    pytest.mark.xdist_group("plates"),\n]\n'
    ),
}


@pytest.mark.parametrize("marks", MARKED)
def test_the_group_of_a_file_is_in_its_mark(marks: str, tmp_path: Path):
    file = tmp_path / "test_plates.py"
    file.write_text(f"import pytest\n\n{MARKED[marks]}")
    assert group_of(file) == "plates"


def test_a_file_without_a_mark_has_no_group(tmp_path: Path):
    file = tmp_path / "test_alone.py"
    file.write_text("def test_nothing():\n    pass\n")
    assert group_of(file) is None


def test_files_that_share_kernels_share_a_worker():
    here = Path(__file__).parent
    shared = ("code_content", "code_of_halos")
    assert {group_of(here / f"test_{name}.py") for name in shared} == {"code_content"}


def test_tests_of_few_files_are_spread_over_the_workers():
    files = [f"test_{number}.py" for number in range(FEW)]
    assert in_whole_files(files) == in_whole_files(["test/pytest"]) == (not is_nightly())
    assert not in_whole_files(files[1:])


@pytest.mark.parametrize("when", ["setup", "call", "teardown"])
@pytest.mark.parametrize("outcome", ["passed", "failed", "skipped"])
def test_workers_tell_all_results_but_passed_fixtures(when: str, outcome: str):
    told = is_needed("testreport", {"data": {"when": when, "outcome": outcome}})
    assert told == (outcome != "passed" or when == "call")


@pytest.mark.parametrize("root", [Attribute, Operation, SSAValue])
def test_classes_of_ir_have_no_registered_members(root: type):
    """A class with such members would deny them while tests decide by bases."""
    for each in derived(root):
        assert isinstance(each, ByBases)
        registered = import_module("_abc")._get_dump(each)[0]
        assert not registered, f"{each} has registered {registered}"


def test_quick_answers_about_ir_are_xdsls():
    module = parsed(HEAT, "heat")
    walked = list(module.walk())
    assert walked == list(WALK(module)) and len(walked) > 5
    for op in walked:
        taken = list(op.operands)
        uses = [(use.operation, use.index) for each in taken for use in each.uses]
        assert all((op, k) in uses for k in range(len(taken)))
        assert [op.operands[k] for k in range(len(op.operands))] == taken
        assert list(op.operands[1:]) == taken[1:]
        for name, accessor in vars(type(op)).items():
            if isinstance(accessor, ByPlace):
                assert getattr(op, name) is accessor.accessor.__get__(op)


@pytest.mark.parametrize(
    ("known", "other", "alike"),
    [
        ("@%p1 ld.global.f64 %fd1, [%rd2+-8];", "@!%p3 ld.global.f64 %fd12, [%rd1];", True),
        ("mov.f64 %fd1, 0d3FF0000000000000;", "mov.f64 %fd2, 0d0000000000000000;", True),
        ("ld.param.u64 %rd1, [run_step_u];", "ld.param.u64 %rd2, [run_d2_v];", True),
        ("@%p1 bra $end_3;", "@!%p2 bra $loop_4;", True),
        ("ld.global.v2.f64 {%fd1, %fd2}, [%rd1];", "ld.global.v4.f64 {%fd1, %fd2}, [%rd1];", False),
        ("add.rn.f32 %f1, %f2, %f3;", "add.rn.f32 %f1, %f2, 0f00000000;", False),
    ],
)
def test_a_form_of_ptx_has_types_and_no_numbers(known: str, other: str, alike: bool):
    assert (forms_of(known) == forms_of(other)) == alike
