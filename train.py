#!/usr/bin/env python3
"""Train a policy from a YAML file: ``python train.py --config aurora.yaml``."""

import sys

from ccgym.cli.train import main

if __name__ == "__main__":
    sys.exit(main())
