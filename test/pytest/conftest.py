"""
The share of the tests that runs. Profiles: `ci` (the default) draws few examples, always the same;
`check` draws fewer; `pytest --hypothesis-profile=nightly` draws many, always different. A test
marked `covering` runs few rows of the product of its parameters, except in the nightly profile.

Fixtures: disk caches for a test or a file of tests, a driver that counts, and a program as a file.
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdsl.irdl import OpDef

from support.command_line import HEAT
from support.covering import covering, numbered, row_of
from support.driver import BookKeeper
from support.few_schedules import few_schedules, model_alone, one_of_each_kind
from support.fused import fuse_by_processor
from support.gpu_programs import book_keeper, cache_in
from support.groups import scheduler_of_groups
from support.known_forms import verify_new_forms
from support.known_ptx import assemble_seldom
from support.known_texts import forget, parsed_once, raised_once
from support.plain_classes import ask_by_bases
from support.quick_ir import answer_quickly
from support.reports import send_results_alone
from support.seldom_verified import verify_seldom
from support.sizes import EXAMPLES, is_nightly
from timetile.runtime.cache import store
from timetile.runtime.cache.store import Cache
from timetile.runtime.device import card_facts
from timetile.runtime.kernels import making
from timetile.runtime.loading import modules
from timetile.runtime.machine import forks, llvm
from timetile.runtime.program import compile as compilation

# What is imported stays: see `pytest_collection_finish`.
gc.disable()

# Tests start dozens of processes: bytecode is kept, though away from the sources, where the
# environment asks for none.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    KEPT = Path(__file__).parents[2] / "build" / "bytecode"
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(KEPT))

# The first example of a process pays for imports and caches: time says nothing about an example.
for name, examples in EXAMPLES.items():
    settings.register_profile(
        name,
        derandomize=name != "nightly",
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("ci")

# The code of threads is verified in hundreds of tests, a tenth of their time: see `known_forms.py`.
OpDef.verify = verify_new_forms

# A third of the texts that tests compile were compiled before: see `known_texts.py`.
modules.parsed = parsed_once
compilation.raised = raised_once

# A question for the class of an object is asked a hundred million times: see `plain_classes.py`.
ask_by_bases()

# So are other questions for IR: see `quick_ir.py`.
answer_quickly()

# The workers of the tests fill the cores: no test compiles in further processes, except on purpose.
os.environ.setdefault(forks.VARIABLE, "1")

# The drivers of tests compute nothing: no test measures a copy, except on purpose.
os.environ[card_facts.SWITCH] = "0"

# The PTX assembler and MLIR have no wheels for macOS.
collect_ignore = ["test_mlir.py", "test_ptx.py"] if sys.platform == "darwin" else []


def pytest_configure(config: pytest.Config) -> None:
    """Of a test that passes, a worker sends the result alone."""
    send_results_alone(config)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """One worker runs the tests of a file, and of a group of files."""
    return scheduler_of_groups(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the covering rows of tests marked `covering`; a row selected by name always runs."""
    if is_nightly() or any("[" in argument for argument in config.args):
        return
    products: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            continue
        if item.get_closest_marker("covering") is not None:
            products[item.nodeid.partition("[")[0]].append(item)
    dropped: set[pytest.Item] = set()
    for rows in products.values():
        marker = rows[0].get_closest_marker("covering")
        assert marker is not None
        kept = covering(numbered([row_of(row) for row in rows]), **marker.kwargs)
        dropped.update(row for number, row in enumerate(rows) if number not in set(kept))
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]


RUNS_C_OF_DEVITO = ("test_devito", "test_pages")
"""Beginnings of the names of modules with tests of C compiled by Devito."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """
    Run tests with C of Devito in a separate thread: the C sets the processor to take subnormal
    numbers for 0, for the thread's remaining life. Devito collects garbage for each function: of
    what the test makes, not of all tests.
    """
    if not pyfuncitem.path.name.startswith(RUNS_C_OF_DEVITO):
        return None
    named = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in named if name in pyfuncitem.funcargs}
    gc.freeze()
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(pyfuncitem.obj, **arguments).result()
    finally:
        gc.unfreeze()
    return True


def pytest_collection_finish() -> None:
    """
    Take the processor's fused multiply-add (see `fused.py`), assemble seldom (see `known_ptx.py`),
    verify pipelines seldom (see `seldom_verified.py`), and collect garbage seldom: the IR of a test
    is many objects in cycles, gone after the test; modules and tests are never garbage.
    """
    if not is_nightly():
        fuse_by_processor()
        assemble_seldom()
        verify_seldom()
    gc.freeze()
    gc.set_threshold(4 * GARBAGE, 20, 50)
    gc.enable()


GARBAGE = 800_000
"""Objects that are collected after a test. A collection amid a test would keep what is in use."""


def pytest_runtest_logfinish() -> None:
    """Collect what the tests since the last collection left, some hundred megabytes."""
    if gc.get_count()[0] > GARBAGE:
        gc.collect(0)


def pytest_sessionfinish() -> None:
    """Leave no object to pytest, which would search all ten times. In `make nightly`, it does."""
    if not is_nightly():
        gc.freeze()


OPTIMISED = ("test_native",)
"""Beginnings of the names of modules with tests of optimised machine code."""


@pytest.fixture(autouse=True, scope="module")
def machine_code_made_quickly(request: pytest.FixtureRequest) -> Iterator[None]:
    """
    LLVM does not optimise machine code of other tests: such tests only compare bits, and LLVM takes
    a twentieth of the time. In `make nightly`, LLVM optimises all code.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not is_nightly() and not request.path.name.startswith(OPTIMISED):
            patch.setattr(llvm, "SPEED", 0)
        yield


@pytest.fixture(scope="module")
def chosen_among_few() -> Iterator[None]:
    """
    Schedules of a file's tests are chosen among few, for tests of bits: the bits of a program do
    not depend on the schedule, and the choice takes most of the time of a small program. In `make
    nightly`, schedules are chosen among all.
    """
    with nullcontext() if is_nightly() else few_schedules():
        yield


@pytest.fixture(scope="module")
def chosen_among_kinds() -> Iterator[None]:
    """
    Schedules of a file's tests are chosen and compared among one of each kind, for tests of what is
    told about a choice. In `make nightly`, schedules are compared with all others.
    """
    with nullcontext() if is_nightly() else one_of_each_kind():
        yield


@pytest.fixture(scope="module")
def chosen_by_model() -> Iterator[None]:
    """
    Schedules of a file's tests are chosen by the model alone, as on a machine without an assembler:
    the assembler's part in the choice takes most of the time of a deep kernel. In `make nightly`,
    the assembler has its part.
    """
    with nullcontext() if is_nightly() else model_alone():
        yield


def no_assembler(arch: str) -> bool:
    """As on a machine without an assembler."""
    return False


@pytest.fixture(scope="module")
def printed_alone() -> Iterator[None]:
    """
    Kernels of a file's tests are printed and not assembled, as on a machine without an assembler,
    for tests whose GPUs are simulated and for counts of operations. In `make nightly`, kernels are
    assembled.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not is_nightly():
            patch.setattr(making, "assembles", no_assembler)
        yield


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty disk cache."""
    monkeypatch.setenv("TIMETILE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """An empty disk cache as an object."""
    return Cache(tmp_path / "cache")


@pytest.fixture
def new_process() -> Iterator[None]:
    """As in a new process: nothing was read or written, and no warning was given."""
    forget()
    store.SAID.clear()
    store.WRITTEN.clear()
    yield
    store.SAID.clear()


@pytest.fixture(scope="module")
def cache_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A disk cache for all tests of a file."""
    with cache_in(tmp_path_factory.mktemp("cache")):
        yield


@pytest.fixture
def driver() -> Iterator[BookKeeper]:
    """A driver that counts what programs take, in place of the machine's driver."""
    with book_keeper() as books:
        yield books


@pytest.fixture
def heat(tmp_path: Path) -> Path:
    """The program of the command line's tests, as a file."""
    path = tmp_path / "heat.mlir"
    path.write_text(HEAT)
    return path
