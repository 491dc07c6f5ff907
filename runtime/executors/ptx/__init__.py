"""Executes printed PTX without a GPU, and finds races, wild accesses, unset registers and waits in
vain.
"""
