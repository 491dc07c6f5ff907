"""
A model as a custom operator of PyTorch: traced by `torch.compile`, exported by `torch.export`, and
run on the tensors' device without a copy to the host.

PyTorch is imported by the call that makes an operator, and by no other.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timetile.frontend.functions import STEP
from timetile.frontend.model import Model
from timetile.frontend.state_checks import check_mapping, check_names


def torch_operator(model: Model, name: str) -> Callable[..., dict[str, Any]]:
    """
    Register a model as an operator of PyTorch, and return a function that calls the operator like
    `Model.advance`: the state after a number of steps, in new tensors.

    ```
    advance = timetile.torch_operator(heat, "models::heat")

    @torch.compile(fullgraph=True)
    def energy(u, k):
        return (advance({"u": u}, steps=100, k=k)["u"] ** 2).sum()
    ```

    `name` has a namespace and a name, separated by `::`, and is free in the process. Tensors in GPU
    memory are advanced on the current stream of PyTorch; steps and scalars are numbers. The
    operator has no gradient: give one by `torch.library.register_autograd`.

    Raises ImportError without PyTorch. Raises TypeError for a step of complex fields, points or
    series, which are advanced outside the operator. The function raises TypeError and ValueError as
    `Model.advance` does.
    """
    torch = importlib.import_module("torch")
    step = model.step
    given = [each for each in step.series if each != STEP]
    if step.pairs or step.points or given:
        raise TypeError(
            f"{model.__name__} has complex fields, points or series, and an operator of PyTorch "
            "takes tensors and numbers; call advance outside torch.compile"
        )
    second = sorted(step.second)
    fields = [*step.fields, *(f"{each}.prev" for each in second)]
    written = [field for field in fields if field.removesuffix(".prev") in step.written]

    def advanced(tensors: Sequence[Any], steps: int, scalars: Sequence[float]) -> list[Any]:
        stream = None
        if tensors[0].is_cuda:
            stream = torch.cuda.current_stream(tensors[0].device).cuda_stream
        state = dict(zip(fields, tensors, strict=True))
        numbers = dict(zip(step.scalars, scalars, strict=True))
        ended = model.advance(state, steps, stream=stream, **numbers)
        return [ended[field] for field in written]

    operator = torch.library.custom_op(
        name,
        advanced,
        mutates_args=(),
        schema="(Tensor[] tensors, SymInt steps, float[] scalars) -> Tensor[]",
    )

    def without_cells(tensors: Sequence[Any], steps: int, scalars: Sequence[float]) -> list[Any]:
        """Tensors of the results' shapes, for tracing."""
        given = (tensors[fields.index(field)] for field in written)
        return [torch.empty_like(one, memory_format=torch.contiguous_format) for one in given]

    operator.register_fake(without_cells)

    def advance(state: Mapping[str, Any], steps: int = 1, **scalars: float) -> dict[str, Any]:
        """The state after some steps: new tensors for assigned fields, and the given ones else."""
        if not torch.compiler.is_compiling():
            check_mapping(step, state)
            check_names(step, state, scalars)
        whole = {**{f"{each}.prev": state[each] for each in second}, **state}
        numbers = [float(scalars[each]) for each in step.scalars]
        found = operator([whole[field] for field in fields], steps, numbers)
        return {**state, **dict(zip(written, found, strict=True))}

    return advance
