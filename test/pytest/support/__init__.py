"""What the tests share: programs as data, an evaluation of their own, and the table of programs."""
