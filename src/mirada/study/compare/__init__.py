"""Systems trained and tested under the same conditions, each run in a process of its own, and what came out."""
