"""Analyses of queues: when planes arrive, how long a kernel keeps them, and where threads wait for
each other.
"""
