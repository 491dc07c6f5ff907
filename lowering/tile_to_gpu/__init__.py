"""From stages over planes to the code of one thread."""
