"""Keep the series of the runs of an evaluation next to their curves, and read them.

The array ``series`` of a file has a field per column of the table: ``archive["series"]["time_s"]``.
The previous version kept CSV files, which can still be read, and which ``--logs`` writes.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym.errors import ResultsError
from ccgym.evaluation.frames import Table
from ccgym.evaluation.kept_arrays import read_arrays, record
from ccgym.evaluation.scheme_summary import CellResult
from ccgym.units import NS_PER_MS

SERIES_STEP_NS: Final = 100 * NS_PER_MS
"""Interval of the kept series: ten recorded intervals."""

_ARRAY: Final = "series"
_TEXTS: Final = ("scheme", "state")
"""Columns with text."""


def series_file(name: str) -> str:
    """Return the name of the CSV file of a run's series, in the results directory: ``cubic_run1.csv``."""
    return f"{name}.csv"


def kept_series(table: Table) -> dict[str, npt.NDArray[Any]]:
    """Return a table of series as the array to keep."""
    columns = {
        name: np.array([one if isinstance(one, str) else "" for one in column])
        if name in _TEXTS
        else np.asarray(column)
        for name, column in table.items()
    }
    return {_ARRAY: record(columns)}


def read_series(directory: Path, cell: CellResult) -> dict[str, npt.NDArray[Any]] | None:
    """Return the columns of a run's series, with None or NaN for unknown values; None if no series were kept.

    Raises:
        ResultsError: The file is damaged.
    """
    found, text = arrays_of_series(directory, cell), directory / series_file(cell.name)
    return _of_csv(text) if found is None and text.exists() else found


def arrays_of_series(directory: Path, cell: CellResult) -> dict[str, npt.NDArray[Any]] | None:
    """Return the columns like :func:`read_series`, but only from the file of the run."""
    arrays = directory / cell.curves
    return read_arrays(arrays, _of_arrays) if cell.curves and arrays.exists() else None


def _of_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]] | None:
    if _ARRAY not in arrays:
        return None
    whole = arrays[_ARRAY]
    return {name: _known(whole[name]) for name in whole.dtype.names or ()}


def _of_csv(file: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with file.open(encoding="utf-8", newline="") as text:
            names, *rows = csv.reader(text)
        columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
        return {
            name: _known(np.array(column)) if name in _TEXTS else np.array([one or "nan" for one in column], np.float64)
            for name, column in columns.items()
        }
    except (OSError, ValueError, IndexError) as error:
        raise ResultsError(
            "results-damaged",
            f"the series of a run cannot be read: {error}",
            where=str(file),
            expected="a file from `ccgym evaluate` or `ccgym report analyze`",
            hint="delete the file and run the same evaluation again: it repeats missing runs",
        ) from error


def _known(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Replace empty texts by None."""
    return np.array([one or None for one in column.tolist()], object) if column.dtype.kind == "U" else column
