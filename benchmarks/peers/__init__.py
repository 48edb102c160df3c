"""How fast other toolkits are at the same workloads, each in an environment of its own: `make bench-peers`."""
