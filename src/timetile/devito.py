"""`timetile.devito`: operators of Devito on timetile, defined in `timetile.frontend.devito`."""

from timetile.frontend.devito import DevitoWarning, RanOn, backend, call_counts, register

__all__ = ["DevitoWarning", "RanOn", "backend", "call_counts", "register"]
