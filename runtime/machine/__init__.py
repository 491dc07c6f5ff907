"""The machine: the NVIDIA driver, LLVM, C's mathematical library, threads, caches of cores."""
