"""Which launches run a time loop, and which buffers hold data that a later step reads."""
