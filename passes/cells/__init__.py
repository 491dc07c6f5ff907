"""Passes on cell functions, one pass a file."""
