"""Passes on time loops, one pass a file."""
