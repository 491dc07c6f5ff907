"""`timetile.sequence`: several models in one call, in turn within each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import FieldEdges
from timetile.frontend.functions import STEP
from timetile.frontend.model import Model
from timetile.frontend.operations import Access, Time, Traced
from timetile.frontend.steps import Step, walk
from timetile.frontend.sweeps import check_sweeps
from timetile.frontend.symbols import Assignment, Held, RepeatedBody, StepStatement, rebuilt
from timetile.frontend.values import Value

IN_TURN = "advance the models in turn, a step each"
"""How to run models that are no sequence."""


def sequence(*models: Model) -> Model:
    """
    A model of several models in turn: a step of the sequence is a step of each model, on shared
    arrays.

    ```
    flow = timetile.sequence(advect, diffuse, project)
    state = flow.advance({"u": u, "v": v, "p": p}, steps=1000, dt=0.01)
    ```

    Fields, scalars and series of equal names are shared. A later model reads the values assigned
    by the models before. Bits are those of one step of each model in turn, and all models are one
    program: kernels advance through several models, and several steps, in a pass over memory. The
    arrays have one shape.

    Raises TypeError for objects that are no models, ValueError for models that do not go together:
    with other axes, options or boundaries of a shared field, with a name for a field and a number,
    or with `u.prev` of a field assigned by another model.
    """
    if not models:
        raise TypeError("sequence takes models of timetile.stencil; pass one or more")
    for model in models:
        check_model(model)
    first = models[0]
    for model in models:
        if model.options != first.options:
            raise ValueError(
                f"{first.step.label} and {model.step.label} have other options; pass models "
                "without options, and give options to the sequence, sequence(...).on(...)"
            )
    return Model(joined([model.step for model in models]), **first.options)


def check_model(model: object) -> None:
    """Raise TypeError for an object that is no model."""
    if not isinstance(model, Model):
        raise TypeError(
            f"sequence takes models of timetile.stencil, got {model!r}; pass decorated functions"
        )


def joined(steps: Sequence[Step]) -> Step:
    """One step of several. Raises ValueError for steps that do not go together."""
    first = steps[0]
    for step in steps:
        if step.points:
            raise ValueError(f"{step.label} has points, which end a step; so {IN_TURN}")
        check_together(first, step)
    parts = Joining()
    for step in steps:
        parts.add(step)
    series = dict.fromkeys(name for step in steps for name in step.series if name != STEP)
    is_numbered = any(STEP in step.series for step in steps)
    made = Step(
        name="_".join(dict.fromkeys(step.name for step in steps)),
        place=first.place,
        rank=first.rank,
        fields={name: axes for step in steps for name, axes in step.fields.items()},
        scalars=tuple(dict.fromkeys(name for step in steps for name in step.scalars)),
        body=tuple(parts.body),
        second=frozenset(name for step in steps for name in step.second),
        reach=None,
        edges={name: edges for step in steps for name, edges in step.edges.items()},
        series=(*series, *([STEP] if is_numbered else [])),
        aliases=parts.aliases,
        pairs=tuple(dict.fromkeys(name for step in steps for name in step.pairs)),
        members=tuple((step.label, frozenset(step.fields)) for step in steps),
    )
    check_names_of(made, steps)
    check_fields(steps)
    check_sweeps(made)
    return made


@dataclass
class Joining:
    """The statements of steps in turn, with new values numbered anew."""

    body: list[StepStatement | RepeatedBody] = field(
        default_factory=list[StepStatement | RepeatedBody]
    )
    aliases: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    versions: Counter[str] = field(default_factory=Counter[str])
    """For each field, the number of its present new values."""
    assigned: set[str] = field(default_factory=set[str])
    """The fields assigned by the steps before."""
    numbers: count[int] = field(default_factory=count)
    """Numbers of temporaries."""

    def add(self, step: Step) -> None:
        """Add the statements of the next step."""
        self.check_repeats(step)
        names = {name: f"temporary {next(self.numbers)}" for name in step.temporaries}
        done: dict[int, Value] = {}
        for value in walk([made.value for made in step.statements]):
            operands = [done[id(operand)] for operand in value.operands]
            done[id(value)] = Value.at(value.place, self.moved(value.operation, names), operands)

        sweeps = {
            made.sweep: replace(made.sweep, versions=self.numbered_anew(made.sweep.versions))
            for made in step.assignments
            if made.sweep is not None
        }

        def again(made: StepStatement) -> StepStatement:
            if isinstance(made, Held):
                return replace(made, name=names[made.name], value=done[id(made.value)])
            version = made.version + self.versions[made.field]
            own = None if made.sweep is None else sweeps[made.sweep]
            return replace(made, value=done[id(made.value)], version=version, sweep=own)

        self.body += rebuilt(step.body, again)
        for (name, version), known in step.aliases.items():
            base = self.versions[name]
            self.aliases[name, version + base] = known + base
        self.versions += present_versions(step)
        self.assigned |= set(step.written)

    def numbered_anew(self, versions: dict[str, int]) -> dict[str, int]:
        """Numbers of new values of the next step, by field."""
        return {name: version + self.versions[name] for name, version in versions.items()}

    def moved(self, operation: Traced, names: dict[str, str]) -> Traced:
        """An operation of the next step. A field assigned before is read by its new values."""
        if not isinstance(operation, Access):
            return operation
        name = operation.field
        if operation.time is Time.INSIDE:
            return replace(operation, field=names[name])
        if operation.time in (Time.NEXT, Time.SWEPT):
            return replace(operation, version=operation.version + self.versions[name])
        if operation.time is Time.NOW and name in self.assigned:
            return replace(operation, time=Time.NEXT, version=self.versions[name])
        return operation

    def check_repeats(self, step: Step) -> None:
        """
        Raise ValueError for a repeated body that assigns a field, and reads the field's values
        from before the step, if a step before assigns the field, too.
        """
        for body in (made for made in step.body if isinstance(made, RepeatedBody)):
            inner = replace(step, body=(body,))
            again = {made.field for made in inner.assignments} & self.assigned
            for value in walk([made.value for made in inner.statements]):
                read = value.operation
                if isinstance(read, Access) and read.time is Time.NOW and read.field in again:
                    raise ValueError(
                        f"{step.label} reads {read.field} as at the beginning of the step in a "
                        f"repeat that assigns {read.field}, and a model before assigns "
                        f"{read.field}, too; keep the value as a temporary before the repeat, or "
                        f"{IN_TURN}"
                    )


def present_versions(step: Step) -> Counter[str]:
    """For each field, the number of new values at the end of a step."""
    found: Counter[str] = Counter()

    def count_in(body: Sequence[StepStatement | RepeatedBody]) -> None:
        for made in body:
            if isinstance(made, Assignment):
                found[made.field] += 1
            elif isinstance(made, RepeatedBody):
                found.update([*step.fields])
                count_in(made.body)
                found.update([*step.fields])

    count_in(step.body)
    return found


def check_together(first: Step, step: Step) -> None:
    """Raise ValueError for steps of other axes."""
    if step.rank != first.rank:
        raise ValueError(
            f"{first.label} has {first.rank} axes, and {step.label} has {step.rank}; a sequence "
            f"has arrays of one shape, so {IN_TURN}"
        )


def check_names_of(made: Step, steps: Sequence[Step]) -> None:
    """Raise ValueError for a name that is an array of one step, and a number of another."""
    kinds = (set(made.fields), set(made.scalars), set(made.series), set(made.pairs))
    for name in sorted({name for kind in kinds for name in kind}):
        if sum(name in kind for kind in kinds) < 2:
            continue
        users = [
            step.label for step in steps if name in (*step.fields, *step.scalars, *step.series)
        ]
        raise ValueError(
            f"{name} is of different kinds in {' and '.join(users)}; give each kind of argument "
            "(Field, Complex, Scalar, Series) a name of its own"
        )


def check_fields(steps: Sequence[Step]) -> None:
    """Raise ValueError for a field that models of a sequence do not share alike."""
    kept: FieldEdges = ((Kind.KEEP, Kind.KEEP),) * steps[0].rank
    users: dict[str, Step] = {}
    for step in steps:
        for name, axes in step.fields.items():
            other = users.setdefault(name, step)
            if other.fields[name] != axes:
                raise ValueError(
                    f"{name} has axes {list(other.fields[name])} in {other.label}, and axes "
                    f"{list(axes)} in {step.label}; a sequence has one array for both, so index it "
                    "along the same axes"
                )
            if other.edges.get(name, kept) != step.edges.get(name, kept):
                raise ValueError(
                    f"{name} has another boundary in {other.label} than in {step.label}; give both "
                    f"one boundary, or {IN_TURN}"
                )
        for name in step.second:
            writers = [each for each in steps if name in each.written]
            if len(writers) > 1:
                raise ValueError(
                    f"{step.label} reads {name}.prev, and {len(writers)} models of the sequence "
                    f"assign {name}; a step earlier would be in the middle of a step, so {IN_TURN}"
                )
