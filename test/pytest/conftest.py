"""
Profiles for generated tests: `ci` (the default) is small and always draws the same examples;
`pytest --hypothesis-profile=nightly` draws many, and others every time.
"""

from __future__ import annotations

import sys

from hypothesis import HealthCheck, settings

# The first example of a process pays for imports and caches: time says nothing about an example.
settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly",
    max_examples=1000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")

# There are no wheels of the PTX assembler and of MLIR for macOS.
collect_ignore = ["test_mlir.py", "test_ptx.py"] if sys.platform == "darwin" else []
