"""Arrays in, arrays out: compile, cache, launch, and the executors that need no GPU."""

if __name__ != "timetile.runtime":
    raise ImportError(f"import this package as 'timetile.runtime', not as {__name__!r}")
