"""Arrays in, arrays out: compile, cache, launch, and executors without a GPU."""

if __name__ != "timetile.runtime":
    raise ImportError(f"import this package as 'timetile.runtime', not as {__name__!r}")
