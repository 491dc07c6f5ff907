"""The parts of `raise-time-loop`: from a block of the stencil dialect to updates.

`memory` names memory, `cells` outlines an apply, `demand` computes the boxes over which values are
needed, `order` decides when updates run, `sequence` emits updates, `sweeps` replaces a block's
operations, `loops` replaces a time loop.
"""
