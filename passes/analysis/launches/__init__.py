"""Analyses of launches: the launches that run a time loop, and the buffers whose data later steps
read.
"""
