"""A package, so that these tests share systems.py."""
