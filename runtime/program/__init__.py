"""`timetile.compile`, compiled programs, and their runs."""
