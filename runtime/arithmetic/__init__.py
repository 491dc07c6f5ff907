"""The meaning of cell operations on NumPy arrays, bit for bit."""
