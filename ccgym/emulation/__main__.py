"""The process for real packets: ``python __main__.py DESCRIPTOR``. The file descriptor contains a job.

Nothing else may be imported here: entering a user namespace requires a process with a single thread, and numerical
libraries start threads when they are imported.

It is started as a file, which finds its own ccgym. So no environment variable is needed, which
the command of ``ccgym shell`` would inherit. Reading the job closes its descriptor, so that it is not inherited.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Do the job and return its exit status."""
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    # Remove this folder, since its files may have the names of other modules; put root before the working directory.
    sys.path = [root, *(entry for entry in sys.path if entry != here)]
    with open(int(sys.argv[1]), encoding="utf-8") as job:
        document = job.read()
    from ccgym import _core

    return _core.net(document)


if __name__ == "__main__":
    raise SystemExit(main())
