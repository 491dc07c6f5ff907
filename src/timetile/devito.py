"""`timetile.devito`: operators of Devito on timetile, defined in `timetile.frontend.devito`."""

from timetile.frontend.devito import DevitoWarning, backend, register

__all__ = ["DevitoWarning", "backend", "register"]
