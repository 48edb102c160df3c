"""How fast other toolkits are at the same works, each in an environment of its own: `make bench-peers`."""
