"""Bundles for hosts without Python: kernels, a plan of launches as JSON, and C that makes the
launches.
"""
