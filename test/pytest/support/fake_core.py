"""`cuda.core` on a driver of the tests: objects whose calls go to the driver's bindings."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from timetile.runtime.device import gpu_memory


class CoreError(Exception):
    """A failed call of the driver."""


def answer(result: tuple[Any, ...]) -> Any:
    """The value that a call of the driver returns."""
    if result[0]:
        raise CoreError(result[0].name)
    return None if len(result) == 1 else result[1]


@dataclass
class CoreEvent:
    """An event."""

    driver: Any
    number: int

    def sync(self) -> None:
        answer(self.driver.cuEventSynchronize(self.number))

    def close(self) -> None:
        answer(self.driver.cuEventDestroy(self.number))

    @property
    def is_done(self) -> bool:
        (status,) = self.driver.cuEventQuery(self.number)
        return status != self.driver.CUresult.CUDA_ERROR_NOT_READY


@dataclass
class CoreStream:
    """A stream."""

    driver: Any
    handle: int

    def sync(self) -> None:
        answer(self.driver.cuStreamSynchronize(self.handle))

    def record(self, event: CoreEvent | None = None) -> CoreEvent:
        if event is None:
            event = CoreEvent(self.driver, answer(self.driver.cuEventCreate(2)))
        answer(self.driver.cuEventRecord(event.number, self.handle))
        return event

    def wait(self, other: CoreEvent | CoreStream) -> None:
        event = other if isinstance(other, CoreEvent) else other.record()
        answer(self.driver.cuStreamWaitEvent(self.handle, event.number, 0))
        if event is not other:
            event.close()


@dataclass
class CoreProperties:
    """Facts of a GPU, by the names of the driver's attributes in small letters."""

    driver: Any
    number: int

    def __getattr__(self, name: str) -> int:
        kinds = self.driver.CUdevice_attribute
        attribute = getattr(kinds, f"CU_DEVICE_ATTRIBUTE_{name.upper()}")
        return answer(self.driver.cuDeviceGetAttribute(attribute, self.number))


class CoreDevice:
    """A GPU."""

    def __init__(self, driver: Any, number: int):
        self.driver, self.number = driver, number
        self.properties = CoreProperties(driver, number)

    @property
    def name(self) -> str:
        return answer(self.driver.cuDeviceGetName(128, self.number)).split(b"\0")[0].decode()

    @property
    def arch(self) -> str:
        facts = self.properties
        return f"{facts.compute_capability_major}{facts.compute_capability_minor}"


class FakeCore:
    """The names of `cuda.core` that timetile uses."""

    def __init__(self, driver: Any):
        self.driver = driver
        self.Stream = SimpleNamespace(from_handle=self.stream)

    def stream(self, number: int) -> CoreStream:
        return CoreStream(self.driver, number)

    def Device(self, number: int) -> CoreDevice:
        return CoreDevice(self.driver, number)


@contextmanager
def driver_in_place(driver: Any) -> Generator[pytest.MonkeyPatch]:
    """A driver of the tests, and its `cuda.core`, in place of the machine's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_memory, "driver", lambda: driver)
        patch.setattr(gpu_memory, "core", lambda: FakeCore(driver))
        yield patch
