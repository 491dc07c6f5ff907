"""Operators of Devito by name, of the kinds in Devito's examples and tutorials."""

from __future__ import annotations

from support.devito_features import FEATURES
from support.devito_flows import FLOWS
from support.devito_waves import WAVES

CASES = FLOWS | WAVES | FEATURES
"""Functions that make a case; the function's name is the case's name."""
