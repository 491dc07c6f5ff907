"""Passes from time loops to placed kernels, one pass a file, with the parts of larger passes."""
