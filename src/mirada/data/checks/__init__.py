"""The check of a corpus before training: what in it would hurt, and where."""
