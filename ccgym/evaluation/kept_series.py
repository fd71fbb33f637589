"""The series of the runs of an evaluation: kept with their curves, and read back.

The array ``series`` of a file is one record with a field per column of the table, ``archive["series"]["time_s"]``.
The version before kept them as CSV, which is read, too, and which ``--logs`` writes.
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
"""Intervals of the series of a run: a tenth of the recorded ones."""

_ARRAY: Final = "series"
_TEXTS: Final = ("scheme", "state")
"""Columns of text."""


def series_file(name: str) -> str:
    """The CSV of a run over time, in the results directory: ``cubic_run1.csv``."""
    return f"{name}.csv"


def kept_series(table: Table) -> dict[str, npt.NDArray[Any]]:
    """A table of series as an array to be kept."""
    columns = {
        name: np.array([one if isinstance(one, str) else "" for one in column])
        if name in _TEXTS
        else np.asarray(column)
        for name, column in table.items()
    }
    return {_ARRAY: record(columns)}


def read_series(directory: Path, cell: CellResult) -> dict[str, npt.NDArray[Any]] | None:
    """The columns of a run over time, None or NaN where nothing is known; None where they were not kept.

    Raises:
        ResultsError: They are damaged.
    """
    found, text = arrays_of_series(directory, cell), directory / series_file(cell.name)
    return _of_csv(text) if found is None and text.exists() else found


def arrays_of_series(directory: Path, cell: CellResult) -> dict[str, npt.NDArray[Any]] | None:
    """As :func:`read_series`, from the file of the run alone."""
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
            expected="what `ccgym evaluate` or `ccgym report analyze` wrote",
            hint="delete the file and evaluate again: what is missing is run again",
        ) from error


def _known(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """None in place of empty texts."""
    return np.array([one or None for one in column.tolist()], object) if column.dtype.kind == "U" else column
