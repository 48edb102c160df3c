"""`python -m mirada` is the command `mirada`."""

import sys

from mirada.cli import main

if __name__ == "__main__":
    sys.exit(main())
