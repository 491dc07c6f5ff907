"""Options of `timetile.compile` without effect on the executor: named once, by the first run."""

from __future__ import annotations

from collections.abc import Sequence

from timetile.passes.diagnostics import LOGGER


class UnusedOptions:
    """The names of options that an executor does not obey."""

    def __init__(self, executor: str, names: Sequence[str] = ()):
        self.executor, self.names = executor, tuple(names)

    @classmethod
    def of(
        cls, executor: str, *, depth: int | None, arch: str | None, bound_waits: bool,
        threads: int | None, tune: bool | None = None,
    ) -> UnusedOptions:  # fmt: skip
        """
        The given options without effect.
        """
        runs_kernels = executor not in ("cpu", "numpy")
        asked = {
            "depth": depth is not None and not runs_kernels,
            "arch": arch is not None and not runs_kernels,
            "bound_waits": bound_waits and not runs_kernels,
            "threads": threads is not None and executor != "cpu",
            "tune": bool(tune) and executor != "gpu",
        }
        return cls(executor, [name for name, is_asked in asked.items() if is_asked])

    def say(self) -> None:
        """Warn of each option, at the first call only."""
        names, self.names = self.names, ()
        for name in names:
            LOGGER.warning("%s", self.warning(name))

    def warning(self, name: str) -> str:
        """The warning of one option."""
        if name == "threads":
            return f"threads has no effect on the {self.executor} executor; choose the executor cpu"
        if name == "tune":
            return (
                f"tune has no effect on the {self.executor} executor: schedules are measured on a "
                "GPU; choose the executor gpu"
            )
        return (
            f"{name} has no effect on the {self.executor} executor, which runs no kernels; choose "
            "the executor gpu, planes, simt or ptx"
        )
