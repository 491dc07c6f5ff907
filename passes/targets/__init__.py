"""
The GPUs that we compile for: instruction sets, parts, and what was fitted to measurements on a
part.
"""
