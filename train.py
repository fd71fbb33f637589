#!/usr/bin/env python3
"""Train a policy from a YAML file: ``python train.py --config aurora.yaml``."""

import sys

from ccgym.invocation import start

if __name__ == "__main__":
    sys.exit(start("script", "train"))
