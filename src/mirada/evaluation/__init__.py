"""How good is the output: metrics with their signatures, bootstrap intervals, quality by length, alignment quality."""
