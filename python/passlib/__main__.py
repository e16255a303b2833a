"""The command line: ``python -m passlib --help``."""

from __future__ import annotations

import sys

from passlib.cli import main

if __name__ == "__main__":
    sys.exit(main())
