"""Passes on stencil programs ahead of raise-time-loop, one pass a file."""
