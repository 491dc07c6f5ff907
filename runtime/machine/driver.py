"""The NVIDIA driver: its bindings, its presence, and the results of its calls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from timetile.runtime.machine.cuda import cuda_module


@dataclass(frozen=True)
class Unavailable:
    """The reason for running without a GPU."""

    reason: str


@cache
def driver() -> Any:
    """The driver's bindings, initialised; Unavailable where no driver answers."""
    # cuda.core hangs without a driver: look for the library first.
    try:
        bindings, pathfinder = cuda_module("bindings.driver"), cuda_module("pathfinder")
    except ImportError as error:
        return Unavailable(f"cuda-python is not installed ({error})")
    try:
        pathfinder.load_nvidia_dynamic_lib("cuda")
    except (pathfinder.DynamicLibNotFoundError, RuntimeError) as error:
        return Unavailable(f"no NVIDIA driver was found ({error})")
    (status,) = bindings.cuInit(0)
    if status != bindings.CUresult.CUDA_SUCCESS:
        return Unavailable(f"the NVIDIA driver does not start ({status.name})")
    return bindings


def gpu_is_available() -> bool:
    """A driver and a GPU answer."""
    return not isinstance(driver(), Unavailable)


def checked(result: tuple[Any, ...]) -> Any:
    """The value returned by a driver call. Raises RuntimeError for a failed call."""
    status = result[0]
    if status:
        raise RuntimeError(f"the NVIDIA driver reports {status.name}")
    if len(result) == 1:
        return None
    return result[1] if len(result) == 2 else result[1:]
