"""From planes to threads to PTX."""

if __name__ != "timetile.lowering":
    raise ImportError(f"import this package as 'timetile.lowering', not as {__name__!r}")
