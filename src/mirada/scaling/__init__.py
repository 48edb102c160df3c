"""Work on more than one process: items go to workers, on this machine or on a Ray cluster, and come back in order."""
