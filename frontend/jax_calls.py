"""
Calls inside `jax.jit`, `jax.vmap` and loops of `jax.lax`. On a GPU the state is advanced there, by
`jax.ffi.ffi_call`; elsewhere the host advances the state when the traced function runs, by
`jax.pure_callback`.

JAX is looked up among the loaded modules, and never imported: arrays are traced only where the
caller has imported JAX.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np

from timetile.frontend import xla_frames
from timetile.frontend.device_calls import CalledValue, DeviceCall, run_numbered

Array = np.ndarray[Any, Any]

HostAdvance = Callable[..., Mapping[str, Any]]
"""`Model.advance` on arrays of NumPy."""

PREV = ".prev"


def is_traced(value: object) -> bool:
    """Whether a value has no cells yet: JAX traces the function around the call."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)


def is_traced_call(state: Mapping[str, Any], scalars: Mapping[str, Any], *others: object) -> bool:
    """Whether JAX traces a call of a model."""
    values = [*state.values(), *scalars.values(), *others]
    return any(map(is_traced, values))


@dataclass(frozen=True)
class TracedCall:
    """
    A call of a model while JAX traces. `state` and `numbers` are known when the traced function
    runs; `held` are arrays only read, and `fixed` other arguments, known at once. The fields of
    `written` get new cells.
    """

    advance: HostAdvance
    written: Sequence[str]
    state: Mapping[str, Any]
    numbers: Mapping[str, Any]
    held: Mapping[str, Any]
    fixed: Mapping[str, Any]
    is_plain: bool
    """Whether programs take all arrays as they are: no batch, no points, no complex fields."""

    @staticmethod
    def of(
        advance: HostAdvance,
        written: Sequence[str],
        state: Mapping[str, Any],
        given: Mapping[str, Any],
        *,
        is_plain: bool,
    ) -> TracedCall:
        """The call of these arguments. Arrays with new cells are traced, whatever was given."""
        asarray = sys.modules["jax"].numpy.asarray
        own = {
            name: asarray(array)
            for name, array in state.items()
            if is_traced(array) or name.removesuffix(PREV) in written
        }
        held = {name: array for name, array in state.items() if name not in own}
        numbers = {name: value for name, value in given.items() if is_traced(value)}
        fixed = {name: value for name, value in given.items() if name not in numbers}
        return TracedCall(advance, written, own, numbers, held, fixed, is_plain)

    def traced(self) -> dict[str, Any]:
        """The state after the call: new tracers for new cells, and the given arrays else."""
        jax = sys.modules["jax"]
        new = [name for name in self.state if name.removesuffix(PREV) in self.written]
        before = [self.state[name] for name in new]
        kinds = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in before]
        call = self.host_call(new)

        def on_host(state: Mapping[str, Any], numbers: Mapping[str, Any]) -> Any:
            return jax.pure_callback(call, kinds, state, numbers, vmap_method="expand_dims")

        given = dict(self.state), dict(self.numbers)
        # NumPy has no name for bf16, which NVIDIA's array interface could carry.
        named = all(np.dtype(array.dtype).kind != "V" for array in self.state.values())
        on_gpu = jax.default_backend() == "gpu" and self.is_plain and named
        if on_gpu and has_foreign_calls():
            made = jax.lax.platform_dependent(
                *given, cuda=self.foreign_call(new, kinds), default=on_host
            )
        else:
            made = on_host(*given)
        return {**self.held, **self.state, **dict(zip(new, made, strict=True))}

    def foreign_call(self, new: Sequence[str], kinds: Sequence[Any]) -> Callable[..., Any]:
        """What a GPU does when the traced function runs there, with results of some kinds."""
        jax = sys.modules["jax"]
        held = {name: jax.numpy.asarray(array) for name, array in self.held.items()}
        arrays = {**held, **self.state}
        operands = [
            CalledValue(name, tuple(value.shape), np.dtype(value.dtype), name in self.numbers)
            for name, value in (*arrays.items(), *self.numbers.items())
        ]
        number = DeviceCall(self.advance, operands, new, self.fixed).numbered()

        def on_card(state: Mapping[str, Any], numbers: Mapping[str, Any]) -> Any:
            call = jax.ffi.ffi_call(TARGET, kinds, vmap_method="sequential")
            values = {**held, **state, **numbers}
            return call(*(values[each.name] for each in operands), number=np.int64(number))

        return on_card

    def host_call(self, new: Sequence[str]) -> Callable[..., list[Array]]:
        """What the host does when the traced function runs."""
        taken = {**self.state, **self.numbers}
        axes = {name: np.ndim(value) for name, value in taken.items()}

        def call(state: Mapping[str, Any], numbers: Mapping[str, Any]) -> list[Array]:
            arrays = {name: np.asarray(value) for name, value in state.items()}
            values = {name: np.asarray(value) for name, value in numbers.items()}
            given = [*arrays.items(), *values.items()]
            leading = [each.shape[: each.ndim - axes[name]] for name, each in given]
            batch = np.broadcast_shapes(*leading)
            if not batch:
                plain = {name: own_number(value) for name, value in values.items()}
                ended = self.advance({**self.held, **arrays}, **plain, **self.fixed)
                return [np.asarray(ended[name]) for name in new]
            in_batch = {
                name: joined(each, batch, axes[name], shared=name not in new)
                for name, each in arrays.items()
            }
            each_number = {
                name: joined(value, batch, axes[name], shared=True)
                for name, value in values.items()
            }
            plain = {name: own_number(value) for name, value in each_number.items()}
            if self.fixed["batch"]:
                raise TypeError(
                    "jax.vmap of a call with batch=True has two axes of states; leave out batch"
                )
            fixed = {**self.fixed, "batch": True}
            ended = self.advance({**self.held, **in_batch}, **plain, **fixed)
            found = [np.asarray(ended[name]) for name in new]
            return [each.reshape(*batch, *each.shape[1:]) for each in found]

        return call


TARGET = "timetile_advance"
"""The name by which XLA calls `run_numbered`."""


@cache
def has_foreign_calls() -> bool:
    """Whether JAX calls functions of others; then the function of models has been registered."""
    jax = sys.modules["jax"]
    if not hasattr(getattr(jax, "ffi", None), "ffi_call"):
        return False
    xla_frames.register(TARGET, "CUDA", run_numbered)
    return True


def own_number(value: Array) -> Any:
    """A number of Python's for an array without axes; another array itself."""
    return value if value.ndim else value.item()


def joined(array: Array, batch: tuple[int, ...], axes: int, *, shared: bool) -> Array:
    """
    An array with all axes of `jax.vmap` as one axis in front; without the axis if `shared` and
    equal for all.
    """
    leading, own = array.shape[: array.ndim - axes], array.shape[array.ndim - axes :]
    if shared and prod(leading) == 1:
        return array.reshape(own)
    whole = np.broadcast_to(array.reshape(*leading, *own), (*batch, *own))
    return np.ascontiguousarray(whole).reshape(-1, *own)


def stand_ins(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state with an array of NumPy, of the shape and type, for each tracer."""
    return {
        name: np.broadcast_to(np.zeros((), array.dtype), array.shape) if is_traced(array) else array
        for name, array in state.items()
    }


def refuse_traced(names: Mapping[str, object]) -> None:
    """Raise TypeError for arguments of a traced call with work between steps, by name."""
    given = [name for name, value in names.items() if value is not None]
    if given:
        raise TypeError(
            f"{' and '.join(given)} cannot run inside a function that JAX traces; advance the "
            "state outside jax.jit, or by a number of steps"
        )
