"""IR definitions; rewrites live in `passes` and `lowering`."""

if __name__ != "timetile.dialects":
    raise ImportError(f"import this package as 'timetile.dialects', not as {__name__!r}")
