"""Looking inside: maps of attention and the numbers of every step. Arrays and labels in, text or figures out."""
