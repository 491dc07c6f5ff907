"""
Run the steps of examples/python on the GPU and compare the results with the CPU executor, bit for
bit.

    python benchmarks/check_python.py
    python benchmarks/check_python.py --steps 1000 --size 1000

The arrays are NumPy's, and arrays of the installed ones of CuPy and PyTorch in GPU memory, also on
a stream other than the default stream. Arrays of a state must stay unchanged, and calls must
continue earlier calls.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).parents[1] / "examples" / "python"

Way = tuple[str, Callable[[Any], Any], Callable[[Any], Any], Any, Any]
"""
A name, conversions from NumPy's arrays and back, the context of a stream, and the stream's handle.
"""


def ways() -> Iterator[Way]:
    """The installed libraries."""
    yield "NumPy", np.copy, np.asarray, nullcontext(), None
    if find_spec("cupy"):
        cupy: Any = import_module("cupy")
        stream = cupy.cuda.Stream(non_blocking=True)
        yield "CuPy", cupy.asarray, cupy.asnumpy, nullcontext(), None
        yield "CuPy on a stream", cupy.asarray, cupy.asnumpy, stream, stream.ptr
    if find_spec("torch"):
        torch: Any = import_module("torch")
        other = torch.cuda.Stream()

        def to_gpu(array: Any) -> Any:
            return torch.from_numpy(array).cuda()

        def from_gpu(tensor: Any) -> Any:
            torch.cuda.synchronize()
            return tensor.cpu().numpy()

        yield "PyTorch", to_gpu, from_gpu, nullcontext(), None
        yield "PyTorch on a stream", to_gpu, from_gpu, torch.cuda.stream(other), other.cuda_stream


def difference(name: str, found: np.ndarray, expected: np.ndarray) -> str:
    """The number of different cells of a field, with the first of them; empty for equal fields."""
    other = found != expected
    if not other.any():
        return ""
    first = tuple(int(k) for k in np.argwhere(other)[0])
    return (
        f"{name}: {other.sum()} cells, {list(first)} is {found[first]!r} instead of "
        f"{expected[first]!r}"
    )


def wrong(name: str, dtype: str, size: int, steps: int, way: Way) -> list[str]:
    """The different fields of an example."""
    _, there, back, context, stream = way
    example = import_module(name)
    model, numbers = getattr(example, name), example.NUMBERS
    start = {key: array.astype(dtype) for key, array in example.start(size).items()}
    expected = model.on(executor="cpu").advance(start, steps=steps, **numbers)
    on_gpu = model.on(executor="gpu")
    with context:
        given = {key: there(array) for key, array in start.items()}
        part = on_gpu.advance(given, steps=steps // 3, stream=stream, **numbers)
        found = on_gpu.advance(part, steps=steps - steps // 3, stream=stream, **numbers)
        differ = [
            said for key in expected if (said := difference(key, back(found[key]), expected[key]))
        ]
        changed = [key for key in start if not np.array_equal(back(given[key]), start[key])]
    return differ + [f"{key} of the state given" for key in changed]


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("examples", nargs="*")
    options.add_argument("--size", type=int, default=300)
    options.add_argument("--steps", type=int, default=100)
    chosen = options.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    names = chosen.examples or sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem != "draw")
    failed = 0
    for way in ways():
        for name in names:
            for dtype in ("float32", "float64"):
                found = wrong(name, dtype, chosen.size, chosen.steps, way)
                failed += bool(found)
                print(f"{name} {dtype} {way[0]}: {', '.join(found) or 'agrees'}")
    sys.exit(f"{failed} differ" if failed else 0)


if __name__ == "__main__":
    main()
