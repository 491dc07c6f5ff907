"""The parts of `raise-nests`: loops over memrefs, the order of their stores, and their applies."""
