"""The kernels of a program: from the temporal level to machine code, and launch plans."""
