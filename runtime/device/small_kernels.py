"""Small kernels of an owner, as of a program's reductions: loaded once, unloaded with the owner."""

from __future__ import annotations

from typing import Any

from timetile.runtime.device.gpu_memory import GpuMemory


class SmallKernels:
    """The small kernels of an owner, by text."""

    def __init__(self, on: GpuMemory):
        self.device, self.functions = on, dict[str, Any]()

    def function(self, text: str, name: str) -> Any:
        """The function of a kernel, loaded at its first use."""
        with self.device.one_load:
            if text not in self.functions:
                self.functions[text] = self.device.function_of_text(text, name)
            return self.functions[text]

    def close(self) -> None:
        """Unload the kernels, after all launches are done."""
        while self.functions:
            self.device.unload_function(self.functions.popitem()[1])
