"""
Steps on arrays of JAX and PyTorch on a GPU: in `jax.jit` and as an operator of PyTorch, with the
bits of the processor.

    python benchmarks/check_arrays.py [float32] [float64] [bfloat16]

Prints a line for each way: the library, the way, the type, whether all bits are equal, and the
milliseconds of a call of 20 steps on 1024 x 1024 cells, the best of five.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from rows import described

import timetile
from timetile import Field, Scalar
from timetile.frontend.arrays import on_host

SHAPE, STEPS, FACTOR = (1024, 1024), 20, 0.125


@timetile.stencil
def wave(u: Field, c: Field, k: Scalar):
    """A wave with a coefficient, of second order in time."""
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = 2 * u[0, 0] - u.prev[0, 0] + k * c[0, 0] * around


def cells(dtype: str) -> dict[str, np.ndarray[Any, Any]]:
    """A state to begin with."""
    drawn = np.random.default_rng(3)
    made = {name: 0.5 + 0.1 * drawn.random(SHAPE) for name in ("u", "c")}
    if dtype == "bfloat16":
        # As PyTorch and JAX round: from float32.
        narrow = import_module("ml_dtypes").bfloat16
        return {name: array.astype(np.float32).astype(narrow) for name, array in made.items()}
    return {name: array.astype(dtype) for name, array in made.items()}


def timed(run: Callable[[], Any], wait: Callable[[Any], Any]) -> tuple[Any, float]:
    """The result of a call, and the least milliseconds of five."""
    times: list[float] = []
    found = wait(run())
    for _ in range(5):
        began = time.perf_counter()
        found = wait(run())
        times.append(1e3 * (time.perf_counter() - began))
    return found, round(min(times), 2)


def ways_of_jax(dtype: str) -> dict[str, Callable[[], tuple[Any, float]]]:
    """Calls with arrays of JAX."""
    jax: Any = import_module("jax")
    jax.config.update("jax_enable_x64", dtype == "float64")
    state = {name: jax.numpy.asarray(array) for name, array in cells(dtype).items()}

    def step(u: Any, c: Any, k: Any) -> Any:
        return wave.advance({"u": u, "c": c}, STEPS, k=k)["u"]

    def in_two(u: Any, c: Any, k: Any) -> Any:
        """Both halves of a batch, by jax.vmap; the second half has the first's cells."""
        both = jax.vmap(step, (0, None, None))(jax.numpy.stack([u, u]), c, k)
        return jax.numpy.where(both[0] == both[1], both[0], jax.numpy.nan)

    wait: Callable[[Any], Any] = jax.block_until_ready
    jitted, batched = jax.jit(step), jax.jit(in_two)
    return {
        "advance": lambda: timed(lambda: step(**state, k=FACTOR), wait),
        "jax.jit": lambda: timed(lambda: jitted(**state, k=FACTOR), wait),
        "jax.vmap": lambda: timed(lambda: batched(**state, k=FACTOR), wait),
    }


def tensor_of(torch: Any, array: np.ndarray[Any, Any]) -> Any:
    """An array as a tensor, also of bfloat16, which PyTorch does not take from NumPy."""
    if array.dtype.name != "bfloat16":
        return torch.from_numpy(array)
    return torch.from_numpy(array.astype(np.float32)).bfloat16()


def ways_of_torch(dtype: str) -> dict[str, Callable[[], tuple[Any, float]]]:
    """Calls with tensors of PyTorch."""
    torch: Any = import_module("torch")
    state = {name: tensor_of(torch, array).cuda() for name, array in cells(dtype).items()}
    operator: Any = timetile.torch_operator(wave, f"models::wave_{dtype}")

    def step(u: Any, c: Any) -> Any:
        return operator({"u": u, "c": c}, STEPS, k=FACTOR)["u"]

    traced = torch.compile(step, fullgraph=True, backend="aot_eager")
    stream = torch.cuda.Stream()

    def beside() -> Any:
        with torch.cuda.stream(stream):
            return step(**state)

    def wait(found: Any) -> Any:
        torch.cuda.synchronize()
        return on_host(found.cpu())

    return {
        "advance": lambda: timed(lambda: wave.advance({**state}, STEPS, k=FACTOR)["u"], wait),
        "operator": lambda: timed(lambda: step(**state), wait),
        "operator on a stream": lambda: timed(beside, wait),
        "torch.compile": lambda: timed(lambda: traced(**state), wait),
    }


def main() -> int:
    failed = 0
    for dtype in sys.argv[1:] or ("float32", "float64", "bfloat16"):
        judge = wave.on(executor="cpu").advance(cells(dtype), STEPS, k=FACTOR)["u"]
        for library, ways in (("torch", ways_of_torch), ("jax", ways_of_jax)):
            try:
                made = ways(dtype)
            except Exception as error:
                made = {"import": lambda error=error: (_ for _ in ()).throw(error)}
            for way, run in made.items():
                row: dict[str, Any] = {"library": library, "way": way, "dtype": dtype}
                try:
                    found, row["ms"] = run()
                    row["equal_bits"] = np.asarray(found).tobytes() == judge.tobytes()
                except Exception as error:
                    row |= {"equal_bits": False, "error": described(error)}
                failed += not row["equal_bits"]
                print(json.dumps(row), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
