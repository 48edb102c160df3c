"""From files to batches: pairs of sentences read safely, a report on them, tokens."""
