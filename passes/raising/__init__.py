"""How a block of the stencil dialect becomes updates: what `raise-time-loop` is made of.

`memory` names memory, `cells` outlines an apply, `demand` says over which boxes values are needed,
`order` when updates run so that each reads what the program reads, `sequence` emits them, `sweeps`
and `loops` replace a block's operations and a time loop.
"""
