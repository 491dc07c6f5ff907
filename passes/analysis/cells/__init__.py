"""What the operations of a cell compute, cost, and may be replaced by."""
