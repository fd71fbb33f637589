"""Arrays of a run in a file that numpy reads, ``.npz``."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeVar
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from ccgym.errors import ResultsError
from ccgym.files import MAX_ARRAYS_BYTES, read_bytes

_Read = TypeVar("_Read")

LEVEL: Final = 3
"""How hard arrays are compressed: in half the time that zip takes by default, to a third more."""

DAMAGED: Final = (OSError, ValueError, KeyError, TypeError, BadZipFile, EOFError, RuntimeError, zlib.error)
"""What reading an archive raises that may hold anything."""


def packed(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Arrays as the content of a file; the same arrays are the same bytes."""
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return content.getvalue()


def record(columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Arrays as the fields of one: numpy reads an array of many fields faster than many arrays."""
    whole = np.zeros((), [(name, column.dtype, column.shape) for name, column in columns.items()])
    for name, column in columns.items():
        whole[name] = column
    return whole


def read_arrays(file: Path, read: Callable[[Mapping[str, npt.NDArray[Any]]], _Read]) -> _Read:
    """Return what ``read`` makes of the arrays of a file. An array is unpacked when ``read`` looks it up.

    Args:
        file: An ``.npz`` file.
        read: Gets the arrays by name.

    Raises:
        ResultsError: The file is not there, or damaged, or lacks an array.
    """
    try:
        with np.load(BytesIO(read_bytes(file, MAX_ARRAYS_BYTES)), allow_pickle=False) as archive:
            return read(archive)
    except DAMAGED as error:
        raise ResultsError(
            "results-damaged",
            f"what is kept of a run cannot be read: {error!r}",
            where=str(file),
            expected="what `ccgym evaluate` wrote",
            hint="run the same evaluation again: it notices, and runs this one again",
        ) from error
