"""Convert tables, mappings of column names to columns of equal length, to data frames and CSV.

pandas is imported only for data frames. An unknown value is NaN in a frame and an empty cell in CSV.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ccgym.errors import PlatformError, ResultsError
from ccgym.evaluation.metrics import NEVER
from ccgym.units import NS_PER_S

if TYPE_CHECKING:
    import pandas as pd

Table: TypeAlias = Mapping[str, "Sequence[Any] | npt.NDArray[Any]"]
"""Columns of equal length, by name."""


def to_frame(table: Table) -> pd.DataFrame:
    """Return a table as a pandas data frame.

    Raises:
        PlatformError: pandas is not installed.
    """
    pandas = import_pandas()
    # None becomes NaN in numeric columns; a column without any value counts as numeric.
    columns = {
        name: np.array(column, dtype=np.float64) if any(value is None for value in column) else column
        for name, column in table.items()
    }
    return pandas.DataFrame(columns)


def import_pandas() -> Any:
    """Return the module pandas; raise :class:`PlatformError` if it is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise PlatformError(
            "package-missing",
            f"pandas cannot be imported ({error})",
            expected="pandas, which is needed only for data frames",
            hint="pip install 'ccgym[report]'; to_csv() and to_json() work without it",
        ) from None
    return pandas


def packet_table(packets: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Return one row per packet from the native core's arrays ``entered_ns``, ``left_ns``, ``size``, ``flow`` (from 0):
    :data:`~ccgym.evaluation.run_numbers.PACKET_COLUMNS`."""
    entered = packets["entered_ns"].astype(np.float64)
    left = np.where(packets["left_ns"] == NEVER, np.nan, packets["left_ns"].astype(np.float64))
    return {
        "flow": packets["flow"].astype(np.int64) + 1,
        "entered_s": entered / NS_PER_S,
        "left_s": left / NS_PER_S,
        "one_way_delay_ms": (left - entered) / 1e6,
        "size_bytes": packets["size"].astype(np.int64),
    }


def to_csv(table: Table) -> str:
    """Return a table as CSV: a line of names, then rows; numbers have at most nine digits, unknown cells are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(_cells(column) for column in table.values()), strict=True))
    return text.getvalue()


def rows_to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV: a line with the names of all columns, then the unchanged rows; missing cells are empty."""
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return text.getvalue()


def write_csv(file: str | os.PathLike[str], table: Table) -> None:
    """Write a table as CSV; raise :class:`ResultsError` if this fails."""
    try:
        Path(file).write_text(to_csv(table), encoding="utf-8")
    except OSError as error:
        raise ResultsError(
            "file-unwritable",
            f"cannot be written: {error.strerror}",
            where=os.fspath(file),
            expected="a file in a folder that exists",
        ) from None


def _cells(column: Any) -> Sequence[Any]:
    if isinstance(column, np.ndarray) and column.dtype == np.float64:
        # For many flows, most columns are empty.
        if np.isnan(column).all():
            return [""] * column.size
        column = column.tolist()
    return [_cell(value) for value in column]


def _cell(value: Any) -> Any:
    if isinstance(value, float):  # numpy's, too
        return "" if math.isnan(value) else f"{value:.9g}"
    return value  # csv writes None as an empty cell
