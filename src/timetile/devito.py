"""`timetile.devito`: operators of Devito on timetile. `timetile.frontend.devito` has it all."""

from timetile.frontend.devito import DevitoWarning, backend, register

__all__ = ["DevitoWarning", "backend", "register"]
