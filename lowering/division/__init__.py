"""Quotients and roots as sequences of machine operations."""
