"""The CPU executor: time loops as machine code on all cores, blocked over time."""
