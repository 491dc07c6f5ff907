"""What the tests share: programs as data, an evaluation of their own, and the table of programs."""

import pytest

# Where one of these asserts, pytest shows the values.
pytest.register_assert_rewrite("support.command_line", "support.kernels")
