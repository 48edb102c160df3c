"""Training: set up, loop, loss, schedule, validation, log. `mirada.train` calls it."""
