"""Experiments made of the other rooms: comparisons, the bottleneck, their reports, and the demo."""
