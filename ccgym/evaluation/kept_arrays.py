"""Write and read arrays of a run in an ``.npz`` file of numpy."""

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
"""Compression level of arrays: half the time of zip's default level, and a third more bytes."""

DAMAGED: Final = (OSError, ValueError, KeyError, TypeError, BadZipFile, EOFError, RuntimeError, zlib.error)
"""Errors from reading an archive with arbitrary content."""


def packed(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return arrays as the content of a file; the same arrays give the same bytes."""
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return content.getvalue()


def record(columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return one array with the columns as fields: numpy reads one array with many fields faster than many arrays."""
    whole = np.zeros((), [(name, column.dtype, column.shape) for name, column in columns.items()])
    for name, column in columns.items():
        whole[name] = column
    return whole


def read_arrays(file: Path, read: Callable[[Mapping[str, npt.NDArray[Any]]], _Read]) -> _Read:
    """Return the result of ``read`` for the arrays of a file. An array is unpacked when ``read`` accesses it.

    Args:
        file: An ``.npz`` file.
        read: Gets the arrays by name.

    Raises:
        ResultsError: The file does not exist, is damaged, or lacks an array.
    """
    try:
        with np.load(BytesIO(read_bytes(file, MAX_ARRAYS_BYTES)), allow_pickle=False) as archive:
            return read(archive)
    except DAMAGED as error:
        raise ResultsError(
            "results-damaged",
            f"the kept data of a run cannot be read: {error!r}",
            where=str(file),
            expected="a file from `ccgym evaluate`",
            hint="run the same evaluation again: it repeats runs with damaged files",
        ) from error
