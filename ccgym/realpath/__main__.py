"""The run process: ``python -m ccgym.realpath COMMAND …``, the native commands without anything around them.

Nothing else may be imported here: entering a user namespace needs a process with a single thread, and numerical
libraries start theirs when they are imported.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command and return its exit status."""
    from ccgym import _core

    return _core.net_main(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
