"""
The GPUs of compilation: instruction sets, parts, and parameters fitted to measurements on a part.
"""
