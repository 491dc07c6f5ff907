"""From time loops to the llvm dialect: the code that runs on the processor's own cores."""
