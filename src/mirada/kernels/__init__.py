"""Fast ways to compute a few equations; each has a reference implementation in models/ that it is tested against."""
