"""Whose a directory is: never two kinds of results in one, and one evaluation at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Final, Literal, TypeAlias

from ccgym.errors import ResultsError

CELLS_DIRECTORY: Final = "cells"
LOCK_FILE: Final = ".ccgym_lock"

Kind: TypeAlias = Literal["evaluation", "suite", "gap", "training"]

MARKERS: Final[Mapping[Kind, tuple[str, str]]] = {
    "evaluation": ("ccgym_manifest.json", "the results of an evaluation"),
    "suite": ("ccgym_suite.json", "the results of a suite"),
    "gap": ("ccgym_gap.json", "what `ccgym gap` measured"),
    "training": ("seeds.json", "a training run"),
}
"""The file that a directory of each kind has, and what that is."""


def refuse_other_kinds(directory: Path, kind: Kind, option: str = "--out") -> None:
    """Raise :class:`ResultsError` if a directory holds something of another kind; ``option`` is what named it."""
    for other, (file, what) in MARKERS.items():
        if other != kind and (directory / file).exists():
            raise ResultsError(
                f"the directory holds {what}",
                where=str(directory),
                expected=f"an empty directory, or one that holds {MARKERS[kind][1]}",
                hint=f"choose another directory with {option}",
            )


def lock_directory(directory: Path, kind: Kind) -> TextIOWrapper:
    """Make a results directory, and the one for its runs, if they are not there, and keep others out of it.

    Args:
        directory: The results directory.
        kind: What it is to hold.

    Returns:
        What holds the lock: it is free again when this is closed, or its process ends.

    Raises:
        ResultsError: It holds something else, cannot be written, or is in use.
    """
    refuse_other_kinds(directory, kind)
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
