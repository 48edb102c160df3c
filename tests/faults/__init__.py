"""What can go wrong around a program, done on purpose: `make faults` (long) and tests/test_faults.py (short)."""
