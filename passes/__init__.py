"""Rewrites above the level of threads, one pass a file."""

if __name__ != "timetile.passes":
    raise ImportError(f"import this package as 'timetile.passes', not as {__name__!r}")
