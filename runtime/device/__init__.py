"""The GPU executor: memory, kernels, graphs of launches, and runs on a stream."""
