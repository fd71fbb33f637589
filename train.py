#!/usr/bin/env python3
"""Train a policy from a YAML file: ``python train.py --config aurora.yaml``."""

import sys

from ccgym.cli.train import main
from ccgym.invocation import called_as

if __name__ == "__main__":
    called_as("script")
    sys.exit(main())
