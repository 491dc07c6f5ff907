"""From a Python function of one time step to the stencil dialect, and arrays in, arrays out."""

if __name__ != "timetile.frontend":
    raise ImportError(f"import this package as 'timetile.frontend', not as {__name__!r}")
