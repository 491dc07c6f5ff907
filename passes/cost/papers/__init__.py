"""
The formulas of the five published systems, a page of functions a paper, with the paper's notation.
"""
