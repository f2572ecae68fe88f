"""`python -m eshkol` is the `eshkol` command."""

import sys

from eshkol.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
