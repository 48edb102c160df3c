"""The embedded English–Spanish corpus, made by a grammar with gold word alignments."""
