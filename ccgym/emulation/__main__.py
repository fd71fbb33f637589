"""The run process: ``python -m ccgym.emulation COMMAND …``, the native commands without anything around them.

Nothing else may be imported here: entering a user namespace needs a process with a single thread, and numerical
libraries start theirs when they are imported.

It is started as a file, which finds the ccgym around it wherever that is. No environment variable has to say so, which
the command of ``ccgym shell`` would inherit.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command and return its exit status."""
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    # Not this folder, whose files may have the names of other modules; and root before the working directory.
    sys.path = [root, *(entry for entry in sys.path if entry != here)]
    from ccgym import _core

    return _core.net_main(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
