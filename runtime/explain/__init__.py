"""What became of a program: facts about it and its kernels, and how they are shown."""

if __name__ != "timetile.runtime.explain":
    raise ImportError(f"import this package as 'timetile.runtime.explain', not as {__name__!r}")
