"""Operators of the kinds that the examples and tutorials of Devito have, by name."""

from __future__ import annotations

from support.devito_features import FEATURES
from support.devito_flows import FLOWS
from support.devito_waves import WAVES

CASES = FLOWS | WAVES | FEATURES
"""Functions that make a case: the name of a function is that of its case."""
