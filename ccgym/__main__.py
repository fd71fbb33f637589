"""``python -m ccgym``: the command ``ccgym``."""

from __future__ import annotations

from ccgym.invocation import start

if __name__ == "__main__":
    raise SystemExit(start("module"))
