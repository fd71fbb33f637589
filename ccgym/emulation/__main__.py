"""The process that meets real packets: ``python __main__.py DESCRIPTOR``, with a job behind that file descriptor.

Nothing else may be imported here: entering a user namespace needs a process with a single thread, and numerical
libraries start theirs when they are imported.

It is started as a file, which finds the ccgym around it wherever that is. No environment variable has to say so, which
the command of ``ccgym shell`` would inherit. Reading the job closes its descriptor, which is not inherited either.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Do the job and return its exit status."""
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    # Not this folder, whose files may have the names of other modules; and root before the working directory.
    sys.path = [root, *(entry for entry in sys.path if entry != here)]
    with open(int(sys.argv[1]), encoding="utf-8") as job:
        document = job.read()
    from ccgym import _core

    return _core.net(document)


if __name__ == "__main__":
    raise SystemExit(main())
