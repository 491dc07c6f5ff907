"""The patterns of convert-gpu-to-nvvm, a file for each family of operations."""
