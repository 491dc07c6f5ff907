"""
Analyses of launches: the launches running a time loop, and the buffers with data for later steps.
"""
