"""The fits of the cost model, a file for each GPU that was measured."""
