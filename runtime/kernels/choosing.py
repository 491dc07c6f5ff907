"""A process that chooses schedules, or makes rivals: the other end of `choosing_process.py`."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from contextlib import suppress
from typing import cast

from timetile.runtime.kernels.choosing_process import (
    WORD_BYTES,
    ChoiceJob,
    MadeChoice,
    MadeRivals,
    RivalsJob,
)
from timetile.runtime.kernels.kernel import encode_facts
from timetile.runtime.kernels.measured import written_schedules
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.planning import launched_by, planned_function

LIMIT_SECONDS = 300
"""The longest life of a process, with or without a caller."""


def made_choice(job: ChoiceJob) -> MadeChoice:
    """
    The schedules chosen, and the kernels of the run and the deepest kernel made, in the cache, too.
    """
    kernels = ProgramKernels(job.module(), job.options, job.cache)
    loop = kernels.loops[job.loop]
    kernels.expect(loop, job.steps)
    facts = kernels.facts_of(loop)
    launched = launched_by(planned_function(loop, facts, job.steps))
    names = list(dict.fromkeys([*launched, facts[0].name]))
    kernels.begin(names)
    made = {name: kernels.kernel(name) for name in names}
    schedules = written_schedules(kernels.tiled) if kernels.model_choices else None
    remarks = tuple(kernels.remarks)
    return MadeChoice(encode_facts(kernels.facts), schedules, kernels.choice.seen, made, remarks)


def answer_to(job: ChoiceJob) -> MadeChoice | MadeRivals:
    """The answer to a job."""
    if not isinstance(job, RivalsJob):
        return made_choice(job)
    # The choice itself never needs the import.
    from timetile.runtime.kernels.making_rivals import made_rivals

    return made_rivals(job)


def main() -> None:
    """Do the job on standard input, and send the answer on standard output."""
    if hasattr(signal, "alarm"):
        signal.alarm(LIMIT_SECONDS)
    # Libraries may print.
    own = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sent = pickle.dumps(answer_to(cast(ChoiceJob, pickle.load(sys.stdin.buffer))))
    # The cache has all, and the caller may be gone.
    with suppress(BrokenPipeError), os.fdopen(own, "wb") as pipe:
        pipe.write(len(sent).to_bytes(WORD_BYTES) + sent)


if __name__ == "__main__":
    main()
