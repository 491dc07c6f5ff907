"""IR definitions, and nothing that rewrites."""

if __name__ != "timetile.dialects":
    raise ImportError(f"import this package as 'timetile.dialects', not as {__name__!r}")
