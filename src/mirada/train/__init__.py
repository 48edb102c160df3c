"""Training: set up, loop, loss, schedule, validation, log."""
