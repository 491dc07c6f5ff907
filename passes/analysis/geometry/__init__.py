"""Analyses of geometry: the places of a kernel's tiles, the cells of each tile, and how columns of
tiles are cut into chunks.
"""
