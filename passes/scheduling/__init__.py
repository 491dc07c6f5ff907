"""The choice of a schedule for each time loop."""
