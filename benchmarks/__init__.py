"""How fast mirada is, beside what the machine can do and beside others: `make bench`. Not part of the package."""
