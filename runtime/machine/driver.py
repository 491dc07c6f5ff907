"""The NVIDIA driver: its bindings and objects, its presence, and the results of its calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

from timetile.runtime.machine.cuda import cuda_module

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


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
    if find_spec("cuda.core") is None:
        return Unavailable("cuda-core is not installed")
    try:
        pathfinder.load_nvidia_dynamic_lib("cuda")
    except (pathfinder.DynamicLibNotFoundError, RuntimeError) as error:
        return Unavailable(f"no NVIDIA driver was found ({error})")
    (status,) = bindings.cuInit(0)
    if status != bindings.CUresult.CUDA_SUCCESS:
        return Unavailable(f"the NVIDIA driver does not start ({status.name})")
    return bindings


def core() -> Any:
    """`cuda.core`: GPUs, streams, events and kernels as objects. Import with a driver alone."""
    return cuda_module("core")


def reported(error: Exception) -> RuntimeError:
    """The error of a call of `cuda.core`, as of a call of the driver."""
    return RuntimeError(f"the NVIDIA driver reports {error}")


def reporting(call: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
    """A call that asks `cuda.core`: errors of the library are RuntimeErrors."""

    @wraps(call)
    def asked(*args: Asked.args, **options: Asked.kwargs) -> Answer:
        try:
            return call(*args, **options)
        except RuntimeError:
            raise
        except Exception as error:
            raise reported(error) from error

    return asked


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
