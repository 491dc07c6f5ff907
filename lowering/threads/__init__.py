"""Passes on the code of a thread, one pass a file."""
