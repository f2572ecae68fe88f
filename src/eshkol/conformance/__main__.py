"""`python -m eshkol.conformance`: the same as `eshkol conformance`."""

import sys

from eshkol.conformance.command import main

if __name__ == "__main__":
    sys.exit(main())
