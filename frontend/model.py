"""A step that runs: compiled once for each shape and type of arrays, the step advances a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Unpack, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.cell_types import CELL_TYPES
from timetile.frontend.arrays import check_array, shape_of, type_of
from timetile.frontend.field_types import ARRAY_DTYPES, DType, FieldTypes, computing_type
from timetile.frontend.functions import STEP
from timetile.frontend.keeping import keeper_of
from timetile.frontend.module import module_of
from timetile.frontend.numbers import NumberKey, NumberProgram
from timetile.frontend.options import Options
from timetile.frontend.runs import State, StateRun, checked_series
from timetile.frontend.steps import Step
from timetile.frontend.stopping import EndCondition, advanced_in_pieces
from timetile.runtime.explain.data import Explanation
from timetile.runtime.host.arrays import checked_scalar, is_numpy_array
from timetile.runtime.machine.floating_point import in_standard_modes
from timetile.runtime.program.compile import compile as compile_program
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.finite import WAY_OUT, blow_up, is_finite, warn
from timetile.runtime.program.pieces import checked_steps, in_pieces

A = TypeVar("A")


def is_mapping(state: object) -> bool:
    """A state is a mapping, also where nobody checked types."""
    return isinstance(state, Mapping)


def how_to_pass(kind: str, name: str) -> str:
    """How a call of `advance` passes an array or a number."""
    return f'{{"{name}": ...}} in the state' if kind == "an array" else f"{name}=..."


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
        self._programs: dict[tuple[tuple[int, ...], tuple[str, ...]], CompiledProgram] = {}
        self._latest: tuple[tuple[int, ...], FieldTypes] | None = None
        self._held: list[Any] = []
        self._others: dict[tuple[tuple[str, object], ...], Model] = {}
        """Models of the step with other options, by the options given to `on`."""
        self._numbers: dict[NumberKey, NumberProgram] = {}

    def __getstate__(self) -> dict[str, Any]:
        """The step and its options: a copy, or a model in another process, compiles anew."""
        return {**self.__dict__, "_others": {}, "_programs": {}, "_held": [], "_numbers": {}}

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
        `fp_contract`, `fp_division`, `gpu`, `threads`, `cache`, `tune`, and for several parts
        `gpus`, `comm`, `parts`, `exchange_every`. Equal options give one model, which keeps
        compiled programs. Raises TypeError for an unknown option.
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
    def module(self, shape: tuple[int, ...], dtype: DType | FieldTypes = "float64") -> ModuleOp:
        """
        The stencil program for arrays of a shape, of one type or of a type for each field, as taken
        by `timetile.compile`. Raises ValueError if no cell of such arrays gets a new value.
        """
        if len(shape) != self.step.rank:
            raise ValueError(
                f"the shape {shape} is not of the {self.step.rank} axes of {self.step.label}; give "
                "a size for each"
            )
        types = self._types(dtype)
        for name in types.values():
            if name not in ARRAY_DTYPES:
                known = ", ".join(ARRAY_DTYPES)
                raise ValueError(f"the type of a field is one of {known}; got {name!r}")
        if min(shape) < 1:
            raise ValueError(f"arrays of shape {shape} have no cells; pass some along each axis")
        return module_of(self.step, shape, types)

    def _types(self, dtype: DType | FieldTypes) -> FieldTypes:
        """The type of each field."""
        return dict.fromkeys(self.step.fields, dtype) if isinstance(dtype, str) else dtype

    def program(
        self, shape: tuple[int, ...], dtype: DType | FieldTypes = "float64"
    ) -> CompiledProgram:
        """
        The compiled program for arrays of a shape, of one type or of a type for each field,
        compiled at the first call. Raises CompileError if the program cannot be compiled,
        ValueError if no cell of such arrays gets a new value.
        """
        types = self._types(dtype)
        key = (tuple(shape), tuple(types[name] for name in self.step.fields))
        if key not in self._programs:
            module = self.module(tuple(shape), types)
            # All buffers of a field are copies of one array: cells that no step writes are equal in
            # all buffers.
            self._programs[key] = compile_program(module, halos="common", **self.options)
        self._latest = (tuple(shape), types)
        return self._programs[key]

    @property
    @in_standard_modes
    def mlir(self) -> str:
        """
        The text of the stencil program for the arrays of the latest call. Raises RuntimeError
        before the first call.
        """
        return str(self.module(*self._known("module")))

    def explain(self, steps: int | None = None) -> Explanation:
        """
        The predicted speed of the program on a GPU for the arrays of the latest call, and the
        limits. `steps` adds the launches of a run of so many steps. Raises RuntimeError before the
        first call.
        """
        return self.program(*self._known("program")).explain(steps)

    def _known(self, method: str) -> tuple[tuple[int, ...], FieldTypes]:
        """The shape and type of the latest call."""
        if self._latest is None:
            raise RuntimeError(
                f"{self.step.label} has not run, and the shapes of the arrays are not known; "
                f"advance a state, or call {method}(shape)"
            )
        return self._latest

    def advance(
        self,
        state: Mapping[str, A],
        steps: int = 1,
        *,
        until: Any = None,
        keep: Any = None,
        every: float = 1,
        first_step: float = 0,
        stream: Any = None,
        **scalars: Any,
    ) -> State[A]:
        """
        The state after `steps` steps, with new arrays for the fields assigned by the step. The
        arrays of `state` stay unchanged, and fields only read are passed on.

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
        group with an array for each assigned field, along a first axis of snapshots, and their
        steps as `step`. A group is written while the run goes on; a run with `first_step` appends.

        Raises TypeError or ValueError for an array or a scalar missing, unknown, or of a wrong
        shape or type; CompileError if the step cannot be compiled for the arrays. A RuntimeWarning
        names fields, in NumPy arrays, with cells that became NaN or infinite.
        """
        if until is None and keep is None:
            advanced = self._advanced(state, steps, stream, scalars, checked_steps(first_step))
            self._warn(state, advanced, f"after {steps} steps")
            return State(advanced, steps, stopped=False)
        run = self._run(state, steps, stream, scalars, checked_steps(first_step))
        condition = None
        if until is not None:
            condition = EndCondition(run, until, self._numbers, self.options)
        with keeper_of(keep, run, state) as keeper:
            stopped = advanced_in_pieces(run, checked_steps(steps), every, condition, keeper.keep)
        self._held = run.spare()
        ended = State(run.state(state), run.done, stopped=stopped)
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
        **scalars: Any,
    ) -> Iterator[tuple[int, dict[str, A]]]:
        """
        Advance by `steps` steps, and stop after every `every` steps and at the end: yields the
        number of steps done, and the state, in arrays of its own.

        ```
        for step, state in heat.snapshots(state, steps=1000, every=100, k=0.2):
            np.savez(f"heat-{step}.npz", **state)
        ```

        Bits and errors are those of one `advance`; errors come at the first state asked for. Raises
        ValueError for a negative number of steps, or an `every` below 1.
        """
        self._check_mapping(state)
        first = checked_steps(first_step)

        def run(state: dict[str, A], count: int, done: int) -> dict[str, A]:
            advanced = self._advanced(state, count, stream, scalars, first + done)
            self._warn(state, advanced, f"between steps {done} and {done + count}")
            return advanced

        return in_pieces(run, dict(state), steps, every)

    def _warn(self, before: Mapping[str, Any], after: Mapping[str, Any], when: str) -> None:
        """Give a RuntimeWarning for fields finite before a run and not afterwards."""
        fields = {
            name: after[name]
            for name in self.step.written
            if is_numpy_array(after[name])
            and not is_finite(after[name])
            and is_finite(np.asarray(before[name]))
        }
        text = blow_up(fields, when, WAY_OUT)
        if text is not None:
            warn(text)

    def _run(
        self,
        state: Mapping[str, Any],
        steps: object,
        stream: Any,
        scalars: Mapping[str, Any],
        first: int,
    ) -> StateRun:
        """A run of at most `steps` steps, numbered from `first` on, at its beginning."""
        self._check_mapping(state)
        self._check_names(state, scalars)
        shape, types = self._shape(state)
        kind = computing_type(types.values())
        numbers = {name: checked_scalar(name, scalars[name], kind) for name in self.step.scalars}
        given = {name: scalars[name] for name in self.step.series if name != STEP}
        dtype = CELL_TYPES[kind].dtype
        series = checked_series(given, dtype, first, checked_steps(steps))
        program = self.program(shape, types)
        return StateRun(self.step, program, state, shape, numbers, series, first, stream)

    def _advanced(
        self,
        state: Mapping[str, A],
        steps: int,
        stream: Any,
        scalars: Mapping[str, Any],
        first: int,
    ) -> dict[str, A]:
        """The state after `steps` steps, numbered from `first` on."""
        run = self._run(state, steps, stream, scalars, first)
        run.go(checked_steps(steps))
        self._held = run.spare()
        return run.state(state)

    def _check_mapping(self, state: object) -> None:
        """TypeError unless a state has arrays by name."""
        if not is_mapping(state):
            names = ", ".join(f'"{name}": ...' for name in self.step.fields)
            raise TypeError(
                f"a state has an array for each field by its name, got {type(state).__name__}; "
                f"pass {{{names}}}"
            )

    def _check_names(self, state: Mapping[str, object], scalars: Mapping[str, object]) -> None:
        """Raise TypeError unless each field has an array and each scalar a number."""
        optional = {f"{name}.prev" for name in self.step.second}
        arrays = set(self.step.fields)
        numbers = {*self.step.scalars, *self.step.series} - {STEP}
        for kind, needed, given, other, others in (
            ("an array", arrays, set(state), "a number", numbers),
            ("a number", numbers, set(scalars), "an array", arrays),
        ):
            if missing := sorted(needed - given):
                raise TypeError(
                    f"{self.step.label} needs {kind} for {', '.join(missing)}; pass "
                    f"{how_to_pass(kind, missing[0])}"
                )
            known = needed | (optional if kind == "an array" else set[str]())
            if unknown := sorted(given - known):
                if misplaced := [name for name in unknown if name in others]:
                    raise TypeError(
                        f"{misplaced[0]} is {other} of {self.step.label}; pass "
                        f"{how_to_pass(other, misplaced[0])}"
                    )
                names = ", ".join(sorted(known)) or "none"
                raise TypeError(
                    f"{self.step.label} has no place for {', '.join(unknown)}; its arguments are "
                    f"{kind} for {names}"
                )

    def _shape(self, state: Mapping[str, Any]) -> tuple[tuple[int, ...], FieldTypes]:
        """
        The shape of the domain and the type of each field. Raises TypeError or ValueError for
        arrays that do not fit together.
        """
        for name, array in state.items():
            check_array(name, array)
        first = self.step.written[0]
        shape = shape_of(state[first])
        types: dict[str, DType] = {
            name: cast(DType, type_of(state[name])) for name in self.step.fields
        }
        for name, array in state.items():
            axes = self.step.fields[name.removesuffix(".prev")]
            if len(shape_of(array)) != len(axes):
                raise ValueError(
                    f"{name} has shape {shape_of(array)}, and {self.step.label} indexes it along "
                    f"{len(axes)} axes; pass an array of as many axes"
                )
            expected = tuple(shape[axis] for axis in axes)
            if shape_of(array) != expected:
                raise ValueError(
                    f"{name} has shape {shape_of(array)}, and {first} has {shape}; pass {name} of "
                    f"shape {expected}"
                )
            own = types[name.removesuffix(".prev")]
            if type_of(array) != own:
                raise TypeError(
                    f"{name} has elements of {type_of(array)}, and {name.removesuffix('.prev')} of "
                    f"{own}; pass both of one type"
                )
        return shape, types
