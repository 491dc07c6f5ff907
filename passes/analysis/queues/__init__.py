"""Analyses of queues: arrival of planes, storage of planes, and synchronisation of threads."""
