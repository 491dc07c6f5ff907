"""Explanations of a program: facts about the program and its kernels, and their display."""

if __name__ != "timetile.runtime.explain":
    raise ImportError(f"import this package as 'timetile.runtime.explain', not as {__name__!r}")
