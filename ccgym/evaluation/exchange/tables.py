"""Write the tables of a results directory as Parquet or Arrow, with pyarrow, which is needed only here.

Columns and units are as in ``docs/reference/results.md``; unknown values are null.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ccgym import _core
from ccgym.errors import ConfigError, PlatformError, ResultsError, shown
from ccgym.evaluation.exchange.recorded import Packets
from ccgym.evaluation.kept_series import read_series
from ccgym.evaluation.pantheon.directory import PantheonDirectory
from ccgym.evaluation.results import ResultSet, result_table
from ccgym.files import atomic_write

TableName: TypeAlias = Literal["flows", "series", "packets"]
"""``flows``: a row per scheme, run and flow; ``series``: also per interval of 100 ms; ``packets``: a row per packet."""

TABLES: Final[tuple[TableName, ...]] = ("flows", "series", "packets")
TABLE_FORMATS: Final = (".parquet", ".arrow", ".feather")
"""Suffixes of files; the last two are the same format, Arrow's file format."""


def write_table(directory: Path, file: Path, table: str = "flows") -> int:
    """Write a table of a results directory, and return the number of its rows.

    Args:
        directory: A directory of ``ccgym evaluate`` or ``ccgym report analyze``; for packets, also one of Pantheon.
        file: A ``.parquet``, ``.arrow`` or ``.feather`` file.
        table: Which table.

    Raises:
        ConfigError: There is no such table.
        PlatformError: pyarrow is not installed.
        ResultsError: There are no results, or no packet logs.
    """
    if table not in TABLES:
        raise ConfigError("unknown-choice", shown(table), where="--table", expected=f"one of {', '.join(TABLES)}")
    pyarrow = import_pyarrow()
    if table == "flows":
        columns = _columns(result_table(ResultSet.load(directory)))
        columns["seed"] = pyarrow.array(columns["seed"], pyarrow.uint64())  # seeds use all 64 bits
        parts = [pyarrow.table(columns)]
    else:
        parts = [pyarrow.table(_columns(one)) for one in _of_runs(directory, table)]
    whole = pyarrow.concat_tables(parts, promote_options="default")
    write_arrow(whole, file, table)
    return int(whole.num_rows)


def write_arrow(table: Any, file: Path, name: str) -> None:
    """Write a table of pyarrow to a file, completely or not at all, in the format that the suffix selects.

    Args:
        table: The table.
        file: A ``.parquet``, ``.arrow`` or ``.feather`` file.
        name: Name of the table in the file.
    """
    pyarrow = import_pyarrow()
    table = table.replace_schema_metadata({"ccgym": _core.__version__, "table": name})
    content = io.BytesIO()
    if file.suffix == ".parquet":
        from pyarrow.parquet import write_table as write_parquet

        write_parquet(table, content, compression="zstd")
    else:
        with pyarrow.ipc.new_file(content, table.schema) as writer:
            writer.write_table(table)
    atomic_write(file, content.getvalue())


def _of_runs(directory: Path, table: str) -> list[dict[str, Any]]:
    """Return a table of each run, with scheme and run as first columns."""
    tables: Iterable[tuple[str, int, Mapping[str, Any] | None]]
    if table == "series":
        tables = ((one.scheme, one.run, read_series(directory, one)) for one in ResultSet.load(directory).cells)
    else:
        opened = PantheonDirectory.open(directory)
        logs = ((one, log) for one in opened.runs if (log := one.read()) is not None)
        tables = ((one.scheme, one.run, Packets.of_log(log).table()) for one, log in logs)
    found = []
    for scheme, run, columns in tables:
        if columns is not None:
            count = len(next(iter(columns.values()), ()))
            named = {("flow_scheme" if name == "scheme" else name): column for name, column in columns.items()}
            found.append({"scheme": [scheme] * count, "run": np.full(count, run), **named})
    if not found:
        raise ResultsError(
            "not-recorded",
            f"there are no {'packet logs' if table == 'packets' else 'series'}",
            where=str(directory),
            expected="a directory of `ccgym evaluate`; packets need `ccgym logs`",
        )
    return found


def _columns(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns as pyarrow accepts them; NaN marks unknown values."""
    return {
        name: np.ma.masked_invalid(column) if isinstance(column, np.ndarray) and column.dtype.kind == "f" else column
        for name, column in table.items()
    }


def import_pyarrow() -> Any:
    """Return the module pyarrow; raise :class:`PlatformError` if it is not installed."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise PlatformError(
            "package-missing",
            f"pyarrow cannot be imported ({error})",
            expected="pyarrow, which is needed only for Parquet and Arrow files",
            hint="pip install 'ccgym[report]'; results.csv and *_run*.csv work without it",
        ) from None
    return pyarrow
