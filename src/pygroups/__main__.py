"""`python -m pygroups` is `pygroups`."""

import sys

from pygroups.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
