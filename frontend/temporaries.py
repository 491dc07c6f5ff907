"""`timetile.temporary`: a value of the step for every cell, read at neighbours by later values."""

from __future__ import annotations

from timetile.frontend.errors import error
from timetile.frontend.operations import Time
from timetile.frontend.symbols import Index, Recorder, recording
from timetile.frontend.values import Value
from timetile.frontend.whole_fields import WholeField


class Temporary(WholeField):
    """A value of a step for every cell: `flux[-1, 0]` is the value of the cell before."""

    __slots__ = ("_name", "_recorder")

    def __init__(self, recorder: Recorder, name: str):
        self._recorder, self._name = recorder, name

    def __repr__(self) -> str:
        return f"<timetile {self._name}>"

    def __getitem__(self, offsets: Index) -> Value:
        """
        The value `offsets` cells away along each axis. Raises StencilError for a wrong index, and
        in another step.
        """
        if recording("a temporary") is not self._recorder:
            raise error(
                "the temporary is of another step; make it in the step that reads it, with "
                "timetile.temporary(...)"
            )
        return self._recorder.read(self._name, Time.INSIDE, offsets)


def temporary(value: Value | float) -> Temporary:
    """
    Name a value of the step, computed once for each cell, to read the value at neighbours.

    ```
    flux = timetile.temporary(k[0] * (u[1] - u[0]))
    u.next = u[0] + flux[0] - flux[-1]
    ```

    A temporary is no field of the state. A read of a temporary at a distance counts as reads of
    the temporary's own cells farther away: a cell keeps its value where such a read lies outside
    the arrays, and `boundary=` continues the fields behind the temporary, not the temporary.

    Raises StencilError outside of a step function, or for a value that is no number of a cell.
    """
    recorder = recording("temporary")
    return Temporary(recorder, recorder.hold(value))
