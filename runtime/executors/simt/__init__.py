"""Executes per-thread IR without a GPU, and finds races, wild accesses and unset values."""
