#!/usr/bin/env python3
"""Evaluate congestion-control schemes on a path: ``python evaluate.py --trace 77.72mbps``."""

import sys

from ccgym.cli.evaluate import main
from ccgym.invocation import called_as

if __name__ == "__main__":
    called_as("script")
    sys.exit(main())
