"""Executors without a GPU: NumPy, planes of the tile level, threads of the simt level, and PTX."""
