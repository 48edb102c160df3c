"""Find outputs: greedy choice, beam search, sampling, and how many sentences share the steps. Knows no model."""
