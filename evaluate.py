#!/usr/bin/env python3
"""Evaluate congestion-control schemes on a path: ``python evaluate.py --trace 77.72mbps``."""

import sys

from ccgym.invocation import start

if __name__ == "__main__":
    sys.exit(start("script", "evaluate"))
