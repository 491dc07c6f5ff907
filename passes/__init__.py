"""
Rewrites above the level of threads, one pass a file, in packages by the level of the IR.

| package | rewrites |
|---|---|
| `stencil` | stencil programs, ahead of `raise-time-loop` |
| `raising` | stencil programs to time loops |
| `loops` | time loops |
| `cells` | cell functions |
| `systems` | pipelines of published systems, by name |
| `scheduling` | nothing: chooses a schedule, with `cost` |
| `tiling` | time loops to placed kernels |
| `analysis`, `targets` | nothing: facts of IR, and of GPUs |
"""

if __name__ != "timetile.passes":
    raise ImportError(f"import this package as 'timetile.passes', not as {__name__!r}")
