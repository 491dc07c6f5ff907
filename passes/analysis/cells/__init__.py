"""Analyses of cell functions: results, costs and possible replacements of operations."""
