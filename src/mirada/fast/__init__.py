"""What models become for searching: weights laid out once or in 8 bits, and a key/value cache."""
