"""A step that runs: compiled once for each shape and type of arrays, the step advances a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Unpack

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from timetile.frontend.batched_steps import Batching
from timetile.frontend.batches import (
    RunInTurn,
    batching_of,
    check_no_batch,
    check_no_points,
    checked_batch,
)
from timetile.frontend.batches_in_a_row import as_one_step, begun_as_one, step_of_batch
from timetile.frontend.complex_arrays import ComplexRun, in_parts, user_names
from timetile.frontend.field_types import FieldTypes, GivenTypes
from timetile.frontend.jax_calls import TracedCall, is_traced_call, refuse_traced, stand_ins
from timetile.frontend.keeping import keeper_of
from timetile.frontend.made_steps import made_step
from timetile.frontend.module import module_of
from timetile.frontend.numbers import NumberKey, NumberProgram
from timetile.frontend.options import Options
from timetile.frontend.placed_keeping import kept_beside
from timetile.frontend.point_runs import Rooms, check_unsampled
from timetile.frontend.runs import RunArguments, State, StateRun, begun
from timetile.frontend.state_checks import (
    check_mapping,
    check_members,
    check_names,
    checked_shape,
    is_mapping,
    shape_and_types,
    types_by_field,
    with_named_fields,
)
from timetile.frontend.steps import Step
from timetile.frontend.stopping import EndCondition, advanced_in_pieces, checked_pieces
from timetile.frontend.unattended import advanced_alone
from timetile.runtime.explain.data import Explanation
from timetile.runtime.host.arrays import is_numpy_array
from timetile.runtime.machine.collection import without_collection
from timetile.runtime.machine.floating_point import in_standard_modes
from timetile.runtime.program.compile import compile as compile_program
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.finite import WAY_OUT, blow_up, is_finite, warn
from timetile.runtime.program.pieces import checked_first, checked_steps, in_pieces

A = TypeVar("A")


class Model:
    """
    A time step made by `timetile.stencil` from a Python function.

    ```
    state = {"u": np.zeros((64, 64))}
    state = heat.advance(state, steps=1000, k=0.2)
    ```

    A state has one array for each field, by name. Arrays are of NumPy, of JAX, or of CuPy, PyTorch
    and the like in GPU memory, of floats, integers or truth values, and of one shape; the
    array of a field without some axis lacks the axis. A field read one step earlier has a second
    array, `"u.prev"`; without the second array the field was equal a step earlier.

    With the boundary `keep`, the arrays hold the whole domain: a cell with a read outside the
    arrays keeps its value.
    """

    def __init__(self, step: Step, doc: str | None = None, **options: Unpack[Options]):
        self.step, self.options = step, options
        self.__name__, self.__doc__ = step.name, doc or type(self).__doc__
        self._programs: dict[tuple[tuple[int, ...], tuple[str, ...], Rooms], CompiledProgram] = {}
        self._latest: tuple[tuple[int, ...], FieldTypes, Rooms] | None = None
        self._held: list[Any] = []
        self._others: dict[tuple[tuple[str, object], ...], Model] = {}
        """Models of the step with other options, by the options given to `on`."""
        self._numbers: dict[NumberKey, NumberProgram] = {}
        self._batches: dict[Batching, Model] = {}
        self._latest_batch: Model | None = None
        """The model of the latest call, if the call was of a batch."""

    def __getstate__(self) -> dict[str, Any]:
        """The step and its options: a copy, or a model in another process, compiles anew."""
        return {
            **self.__dict__,
            "_others": {},
            "_programs": {},
            "_held": [],
            "_numbers": {},
            "_batches": {},
            "_latest_batch": None,
        }

    def __repr__(self) -> str:
        names = ", ".join([*self.step.fields, *self.step.scalars])
        return f"<timetile model {self.step.label} of {names}>"

    # Hidden from type checkers: a type checker then refuses the call without running.
    if not TYPE_CHECKING:

        def __call__(self, *arguments: object, **named: object) -> NoReturn:
            """TypeError: a model is no function of arrays."""
            state = ", ".join(f'"{name}": ...' for name in self.step.fields)
            raise TypeError(
                f"{self.step.label} is a model; advance a state: "
                f"{self.step.name}.advance({{{state}}}, steps=...)"
            )

    def on(self, **options: Unpack[Options]) -> Model:
        """
        The step with other options of `timetile.compile`: `executor`, `depth`, `arch`,
        `fp_contract`, `fp_division`, `fp_reassoc`, `gpu`, `threads`, `cache`, `tune`, and for
        several parts `gpus`, `comm`, `parts`, `exchange_every`. Equal options give one model, which
        keeps compiled programs. Raises TypeError for an unknown option.
        """
        if unknown := sorted(set(options) - set(Options.__annotations__)):
            known = ", ".join(Options.__annotations__)
            raise TypeError(f"on has no option {', '.join(unknown)}; its options are {known}")
        key = tuple(sorted(options.items()))
        made = Model(self.step, self.__doc__, **{**self.options, **options})
        try:
            hash(key)
        except TypeError:
            return made
        return self._others.setdefault(key, made)

    @in_standard_modes
    @without_collection
    def module(
        self, shape: tuple[int, ...], dtype: GivenTypes = "float64", rooms: Rooms = ()
    ) -> ModuleOp:
        """
        The stencil program for arrays of a shape, of one type or of a type for each field, as taken
        by `timetile.compile`; of a step with points, for lists of some sizes, as found by a call of
        `advance`. Raises ValueError if no cell of such arrays gets a new value, for another type,
        or without the sizes.
        """
        shape = checked_shape(shape)
        if len(shape) != self.step.rank:
            raise ValueError(
                f"the shape {shape} is not of the {self.step.rank} axes of {self.step.label}; give "
                "a size for each"
            )
        types = types_by_field(self.step, dtype)
        if min(shape) < 1:
            raise ValueError(f"arrays of shape {shape} have no cells; pass some along each axis")
        check_members(self.step, types)
        if len(rooms) != len(self.step.points):
            raise ValueError(
                f"{self.step.label} has points, and the sizes of their lists are not known; "
                "advance a state, and ask for mlir or explain"
            )
        return module_of(self.step, shape, types, rooms)

    def program(
        self, shape: tuple[int, ...], dtype: GivenTypes = "float64", rooms: Rooms = ()
    ) -> CompiledProgram:
        """
        The compiled program for arrays of one shape, compiled at the first call. `dtype` is one
        type, or a type for each field, and `rooms` are the sizes of lists of points. Raises
        CompileError if the program cannot be compiled, ValueError if no cell of such arrays gets a
        new value.
        """
        types, shape = types_by_field(self.step, dtype), checked_shape(shape)
        key = (shape, tuple(types[name] for name in self.step.fields), rooms)
        if key not in self._programs:
            module = made_step(self.step, shape, types, rooms, self.module)
            # All buffers of a field are copies of one array: cells that no step writes are equal in
            # all buffers.
            self._programs[key] = compile_program(module, halos="common", **self.options)
        self._latest = (shape, types, rooms)
        return self._programs[key]

    @property
    @in_standard_modes
    def mlir(self) -> str:
        """
        The text of the stencil program for the arrays of the latest call. Raises RuntimeError
        before the first call.
        """
        if self._latest_batch is not None:
            return self._latest_batch.mlir
        return str(self.module(*self._known("module")))

    def explain(self, steps: int | None = None) -> Explanation:
        """
        The predicted speed of the program on a GPU for the arrays of the latest call, and the
        limits. `steps` adds the launches of a run of so many steps. Raises RuntimeError before the
        first call.
        """
        if self._latest_batch is not None:
            return self._latest_batch.explain(steps)
        return self.program(*self._known("program")).explain(steps)

    def _known(self, method: str) -> tuple[tuple[int, ...], FieldTypes, Rooms]:
        """The shape and type of the latest call."""
        if self._latest is None:
            raise RuntimeError(
                f"{self.step.label} has not run, and the shapes of the arrays are not known; "
                f"advance a state, or call {method}(shape)"
            )
        return self._latest

    def advance(
        self,
        state: Mapping[str, A] | None = None,
        steps: int = 1,
        *,
        until: Any = None,
        keep: Any = None,
        every: float = 1,
        first_step: float = 0,
        stream: Any = None,
        batch: float = False,
        **scalars: Any,
    ) -> State[A]:
        """
        The state after `steps` steps, with new arrays for the fields assigned by the step. The
        arrays of `state` stay unchanged, and fields only read are passed on. Fields may also be
        passed by name: `heat.advance(u=plate, steps=100, k=0.2)`.

        `scalars` are the step's scalar arguments by name, and its series: arrays of NumPy of one
        axis, with a number for each step from 0 on. `first_step` is the number of the first step of
        the run. Arrays in GPU memory are advanced there,
        asynchronously on `stream`, a CUDA stream: give the current stream of the arrays' library
        unless the current stream is the default.

        `until` ends the run early. The function is called after every `every` steps, with the
        fields and scalars that it names as arguments, and ends the run by a true value:

        ```
        state = jacobi.advance(
            state, 100000, every=100,
            until=lambda u: timetile.maximum(abs(u.next[0, 0] - u[0, 0])) < 1e-6,
        )
        ```

        There `u.next` is the newest value and `u` the value a step earlier, read by
        `timetile.maximum`, `minimum` and `total`. The state has the number of steps done as
        `state.steps`, and whether `until` ended the run as `state.stopped`.

        `keep` keeps a state after every `every` steps and at the end, with arrays of NumPy of its
        own: a list gets the states, a function is called with each state, and a path is of a Zarr
        group, or of an HDF5 file (`.h5`, `.hdf5`), with an array for each assigned field, along a
        first axis of snapshots, and their steps as `step`. A file is written while the run goes on;
        a run with `first_step` appends.

        With `batch=True` every index of the first axis of the arrays is a state of its own,
        advanced with the bits of a call of its own: arrays have an axis more than the step's
        fields. A field only read may be one array for all, without the axis; a scalar may be an
        array with a number for each index.

        Raises TypeError or ValueError for an array or a scalar missing, unknown, or of a wrong
        shape or type; CompileError if the step cannot be compiled for the arrays. A RuntimeWarning
        names fields, in NumPy arrays, with cells that became NaN or infinite.
        """
        state, scalars = with_named_fields(
            user_names(self.step, tuple(self.step.fields)), state, scalars
        )
        if until is not None:
            check_no_batch(batch)
        if is_mapping(state) and is_traced_call(state, scalars, steps, first_step):
            refuse_traced({"until": until, "keep": keep, "stream": stream})
            return self._traced(state, steps, first_step, batch, scalars)
        given = RunArguments(state, steps, stream, scalars, checked_first(first_step))
        if until is None and keep is None:
            advanced = self._advanced(given, batch)
            self._warn(state, advanced, f"after {steps} steps")
            return advanced
        run = self._run(given, batch)
        condition = None
        if until is not None:
            condition = EndCondition(run.of_parts, until, self._numbers, self.options)
        count, between = checked_steps(steps), checked_pieces(every)
        if condition is not None and keep is None:
            again = partial(self._run, given, batch)
            run, stopped = advanced_alone(run, count, between, condition, again)
        else:
            with keeper_of(keep, run, state) as keeper, kept_beside(run, keeper) as kept:
                stopped = advanced_in_pieces(run, count, between, condition, kept)
        self._held = run.spare()
        ended = State(run.state(state), run.done, stopped=stopped, samples=run.samples())
        self._warn(state, ended, f"after {run.done} steps")
        return ended

    def snapshots(
        self,
        state: Mapping[str, A],
        steps: int,
        every: int,
        *,
        first_step: float = 0,
        stream: Any = None,
        batch: float = False,
        **scalars: Any,
    ) -> Iterator[tuple[int, dict[str, A]]]:
        """
        Advance by `steps` steps, and stop after every `every` steps and at the end: yields the
        number of steps done, and the state, in arrays of its own.

        ```
        for step, state in heat.snapshots(state, steps=1000, every=100, k=0.2):
            np.savez(f"heat-{step}.npz", **state)
        ```

        Bits, errors and `batch` are those of one `advance`; errors come at the first state asked
        for. Raises ValueError for a negative number of steps, or an `every` below 1.
        """
        check_mapping(self.step, state)
        check_unsampled(self.step)
        first = checked_first(first_step)

        def run(state: dict[str, A], count: int, done: int) -> dict[str, A]:
            given = RunArguments(state, count, stream, scalars, first + done)
            advanced = self._advanced(given, batch)
            self._warn(state, advanced, f"between steps {done} and {done + count}")
            return advanced

        return in_pieces(run, dict(state), steps, every)

    def _warn(self, before: Mapping[str, Any], after: Mapping[str, Any], when: str) -> None:
        """Give a RuntimeWarning for fields finite before a run and not afterwards."""
        fields = {
            name: after[name]
            for name in user_names(self.step, self.step.written)
            if is_numpy_array(after[name])
            and not is_finite(after[name])
            and is_finite(np.asarray(before[name]))
        }
        if (text := blow_up(fields, when, WAY_OUT)) is not None:
            warn(text)

    def _traced(
        self,
        state: Mapping[str, Any],
        steps: object,
        first_step: object,
        batch: object,
        scalars: Mapping[str, Any],
    ) -> Any:
        """
        The state after a call inside a function that JAX traces, as a dict of tracers. The program
        is compiled now, for the errors of the call to point at the caller's line.
        """
        if not self.step.pairs and not checked_batch(batch):
            check_mapping(self.step, state)
            check_names(self.step, state, scalars)
            self.program(*shape_and_types(self.step, stand_ins(state)))
        given = {**scalars, "steps": steps, "first_step": first_step, "batch": batch}
        written = user_names(self.step, self.step.written)
        plain = not (self.step.pairs or self.step.points or checked_batch(batch))
        return TracedCall.of(self.advance, written, state, given, is_plain=plain).traced()

    def _in_batch(self, batching: Batching) -> Model:
        """The model of a batch, kept with its programs."""
        if batching not in self._batches:
            made = Model(step_of_batch(self.step, batching), self.__doc__, **self.options)
            self._batches[batching] = made
        return self._batches[batching]

    def _run(self, given: RunArguments[Any], batch: object) -> StateRun:
        """A run at its beginning."""
        if self.step.pairs:
            check_mapping(self.step, given.state)
            parts = in_parts(self.step, given.state)
            return ComplexRun(self._run_of(replace(given, state=parts), batch), parts)
        return self._run_of(given, batch)

    def _run_of(self, given: RunArguments[Any], batch: object) -> StateRun:
        """A run on real arrays."""
        self._latest_batch = None
        if not checked_batch(batch):
            return begun(self.step, self.program, given)
        check_no_points(self.step)
        batching = batching_of(self.step, given.state, given.scalars)
        found = as_one_step(self.step, batching, given.state)
        if found is None:
            return RunInTurn(self.step, self.program, batching, given)
        model = self._latest_batch = self._in_batch(found)
        return begun_as_one(model.step, model.program, replace(found, count=batching.count), given)

    def _advanced(self, given: RunArguments[A], batch: object) -> State[A]:
        """The state after a run."""
        run = self._run(given, batch)
        steps = checked_steps(given.steps)
        run.go(steps)
        self._held = run.spare()
        return State(run.state(given.state), steps, stopped=False, samples=run.samples())
