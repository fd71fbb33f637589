"""One evaluation at a time in a results directory."""

from __future__ import annotations

import fcntl
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from ccgym.errors import ResultsError

CELLS_DIRECTORY: Final = "cells"
LOCK_FILE: Final = ".ccgym_lock"


def lock_directory(directory: Path) -> TextIOWrapper:
    """Make a results directory, and the one for its runs, if they are not there, and keep others out of it.

    Args:
        directory: The results directory.

    Returns:
        What holds the lock: it is free again when this is closed, or its process ends.

    Raises:
        ResultsError: It cannot be written, or somebody else has it.
    """
    try:
        (directory / CELLS_DIRECTORY).mkdir(parents=True, exist_ok=True)
        lock = (directory / LOCK_FILE).open("w")
    except OSError as error:
        raise ResultsError(
            f"the directory cannot be written: {error.strerror}",
            where=str(directory),
            expected="a directory that exists or can be made",
            hint="choose another one with --out",
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise ResultsError(
            "another evaluation is writing to this directory",
            where=str(directory),
            expected="one evaluation at a time",
            hint="wait for it, or choose another directory with --out",
        ) from None
    return lock
