"""Programs on several ranks: each runs a part of the domain, and ranks exchange ghosts."""
