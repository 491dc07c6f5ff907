"""
From planes to threads to PTX: `tile_to_gpu` makes the code of a thread, `threads` and `division`
rewrite the code, `gpu_to_nvvm` and `ptx` print machine operations, `cpu` makes machine code for
processors.
"""

if __name__ != "timetile.lowering":
    raise ImportError(f"import this package as 'timetile.lowering', not as {__name__!r}")
