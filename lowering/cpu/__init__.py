"""From time loops to the llvm dialect: code for the cores of the processor."""
