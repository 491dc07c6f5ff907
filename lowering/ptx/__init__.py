"""PTX text from nvvm-level IR."""
