"""A package, so that these tests share systems.py and can import the reference equations beside it."""
