"""The best constant cwnd of known paths: the table ``traces/best_windows.csv``, and the search in it.

``ccgym paths best-cwnd`` writes the table with :mod:`ccgym.evaluation.best_cwnd`, which defines the best window. The
expert of kind ``best_window`` reads the target window of a learner from the table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic import Field, field_validator

from ccgym.config.catalog import traces_directory
from ccgym.config.declared import Strict
from ccgym.config.path import NetworkPath
from ccgym.config.yaml_loader import Loaded, validate
from ccgym.errors import CcgymError, ConfigError, PlatformError, located

TABLE_FILE: Final = "best_windows.csv"
"""Name of the table in the folder of traces."""
MIN_SHARE: Final = 0.2
"""Min throughput of a target window, as a fraction of the rate. The best window of a path can be below it."""


class WindowRow(Strict):
    """The best windows of one path and their results: by throughput, and by power (throughput over delay).

    Rates are in Mbit/s, delays in ms, losses are fractions, windows are in packets.
    """

    path: str
    """Name in the catalog."""
    rate_mbps: float = Field(gt=0)
    one_way_delay_ms: float = Field(ge=0)
    queue: str
    """Queue, in the form of the argument ``queue`` of a path."""
    random_loss: float = Field(ge=0, le=1)
    window: int = Field(ge=1)
    throughput_mbps: float = Field(ge=0)
    delay_p95_ms: float = Field(ge=0)
    rtt_p95_ms: float = Field(ge=0)
    loss: float = Field(ge=0, le=1)
    power_window: int = Field(ge=1)
    power_throughput_mbps: float = Field(ge=0)
    power_delay_p95_ms: float = Field(ge=0)
    power_rtt_p95_ms: float = Field(ge=0)
    power_loss: float = Field(ge=0, le=1)
    published: int | None = Field(default=None, ge=1)
    """Window that Indigo's expert used on the path."""
    runs: int = Field(ge=1)
    """Number of runs in the means; 1 if nothing on the path is random."""
    runtime_s: float = Field(gt=0)
    seed: int = Field(ge=0)
    """Seed of the first run."""

    @property
    def target(self) -> int | None:
        """The target window of an expert; ``None`` if no window is good enough."""
        return self.window if self.throughput_mbps >= MIN_SHARE * self.rate_mbps else None

    @field_validator("published", mode="before")
    @classmethod
    def _empty(cls, value: object) -> object:
        return None if value == "" else value


COLUMNS: Final = tuple(WindowRow.model_fields)
"""Columns of the table."""


def read_table(file: Path) -> dict[str, WindowRow]:
    """Read the rows of a table, by name of the path; empty if the file does not exist.

    Raises:
        ConfigError: The table is damaged; the message contains the line.
        PlatformError: The table cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise PlatformError("file-unreadable", f"the table cannot be read: {error}", where=str(file)) from None
    reader = csv.DictReader(io.StringIO(text))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise ConfigError(
            "file-malformed",
            f"columns {', '.join(reader.fieldnames or ())}",
            where=str(file),
            expected=", ".join(COLUMNS),
            hint="write the table again with `ccgym paths best-cwnd`",
        )
    rows: dict[str, WindowRow] = {}
    for cells in reader:
        with located(f"{file}:{reader.line_num}"):
            row = validate(Loaded(cells), WindowRow)
        rows[row.path] = row
    return rows


def table_text(rows: Iterable[WindowRow]) -> str:
    """Return the text of a table with these rows."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row})
    return out.getvalue()


_read_once = lru_cache(maxsize=4)(read_table)


def best_windows() -> Mapping[str, WindowRow]:
    """Return the table that is included in ccgym, by name of the path; it is read once.

    Raises:
        ConfigError: The table is damaged.
    """
    return _read_once(traces_directory() / TABLE_FILE)


def best_window_of(path: object) -> int | None:
    """Return the best window of a path in the table, under any of its names.

    A path with the same name but other elements is another path.

    Args:
        path: A :class:`NetworkPath`; all other values are not in the table.

    Returns:
        Packets of 1500 bytes; ``None`` if the path is not in the table or no window reaches :data:`MIN_SHARE`.
    """
    if not isinstance(path, NetworkPath):
        return None
    if path.name is not None:
        row = best_windows().get(path.name)
        if row is not None and NetworkPath.named(row.path).chain == path.chain:
            return row.target
    return _by_content(traces_directory() / TABLE_FILE).get(path.chain)


@lru_cache(maxsize=4)
def _by_content(file: Path) -> Mapping[Any, int | None]:
    """Return windows by the elements of the path."""
    windows: dict[Any, int | None] = {}
    for name, row in _read_once(file).items():
        try:
            windows[NetworkPath.named(name).chain] = row.target
        except CcgymError:  # a path that is no longer in the catalog
            continue
    return windows
