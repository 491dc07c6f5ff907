"""
Shared parts of the tests: programs as data, an independent evaluation, and the table of programs.
"""

import pytest

# pytest shows the values in failed assertions of these modules.
pytest.register_assert_rewrite("support.command_line", "support.kernels")
