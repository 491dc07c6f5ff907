"""The programs of `choice_rows.py`.

They are steps as users write them (`choice_models.py`), real steps as of Devito's operators
(`real_steps.py`, `coupled_programs.py`), examples, and stencils of the tables.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from check_python import EXAMPLES
from choice import STENCIL_NAMES
from choice_answers import Question
from choice_models import MODELS, UserModel
from coupled_programs import SYSTEMS
from real_steps import PROGRAMS

REAL = (
    *("acoustic_2d_so4", "acoustic_3d_so4", "acoustic_3d_so8", "elastic_3d_so4", "flux_2d"),
    *("vardiff_3d_so4", "wave_3d_so2", "wave_3d_so4", "wave_3d_so8"),
)
"""Real steps, as of Devito's operators, in FP32."""

COUPLED = ("tti8", "tti13", "vp_coupled_3d_so8", "elastic_2d_so2", "elastic_2d_so4", "lbm_d2q9")
"""Coupled systems, in FP32 first."""

USED = ("fdtd", "gray_scott", "lattice_boltzmann", "shallow_water", "burgers")
"""Examples of examples/python, in FP32."""

TABLE_F32 = ("j2d5pt", "j2d9pt", "gradient2d", "star2d3r", "box2d3r", "j3d7pt", "j3d27pt")
"""Stencils of the tables in FP32; all are measured in FP64."""

IN_BOTH = ("heat", "heat3", "mean", "wave2", "wave3", "heat_coefficient", "shallow", "burgers3")
"""Models measured in both types ahead of others."""

USUAL_SECONDS = 8.0
"""Seconds of a core for a choice, where not known."""


def add_programs() -> list[str]:
    """Add real steps, coupled systems and examples to the models: their names."""
    sys.path.insert(0, str(EXAMPLES))
    MODELS.update({name: UserModel(PROGRAMS[name]) for name in REAL})
    MODELS.update({name: UserModel(SYSTEMS[name].step) for name in COUPLED})
    for name in USED:
        example = import_module(name)
        MODELS[f"examples/{name}"] = UserModel(getattr(example, name), dict(example.NUMBERS))
    return [*REAL, *COUPLED, *(f"examples/{name}" for name in USED)]


def all_questions() -> list[Question]:
    """The programs: each once, then some in their other type, then the others in it."""
    own, more = list(MODELS), add_programs()
    named = [(name, "f64") for name in own] + [(name, "f32") for name in more]
    named += [(name, "f64") for name in STENCIL_NAMES]
    named += [(name, "f32") for name in (*IN_BOTH, *TABLE_F32, *own)]
    named += [(name, "f64") for name in COUPLED]
    return [Question(name, element) for name, element in dict.fromkeys(named)]


def in_order_of_cost(questions: list[Question], known: list[dict[str, Any]]) -> list[Question]:
    """
    Programs, a program's first type before its second, then by seconds of compilation in earlier
    rows: shares of every n-th program are balanced.
    """
    seconds = {(row["program"], row["dtype"]): row.get("compile_cpu_s") for row in known}
    seen: set[str] = set()
    keys: dict[Question, tuple[bool, float]] = {}
    for each in questions:
        cost = seconds.get((each.program, each.element)) or USUAL_SECONDS
        keys[each] = each.program in seen, cost
        seen.add(each.program)
    return sorted(questions, key=keys.__getitem__)
