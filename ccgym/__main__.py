"""``python -m ccgym``: the command ``ccgym``."""

from __future__ import annotations

from ccgym.cli.main import main
from ccgym.invocation import called_as

if __name__ == "__main__":
    called_as("module")
    raise SystemExit(main())
