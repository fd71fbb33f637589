"""Logs of a run: CSV tables and TensorBoard's events. Both are cut back when a run is resumed."""

from __future__ import annotations

import csv
import io
import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from torch.utils.tensorboard import SummaryWriter
from typing_extensions import override

from ccgym.errors import ResultsError
from ccgym.files import atomic_write, disk_error

STEP: Final = "step"
"""First column of every table."""


class Table(KVWriter):
    """A CSV file whose first column is the step. Later rows may add columns, which are empty in earlier rows.

    Args:
        path: The file.
        resume_at: Continue the existing table, without rows of later steps; None starts a new table.

    Raises:
        ResultsError: The existing table cannot be read.
    """

    def __init__(self, path: Path, resume_at: int | None = None) -> None:
        self.path = path
        self.columns: list[str] = [STEP]
        self.rows: list[dict[str, str]] = []
        if resume_at is not None and path.exists():
            self._read(resume_at)
        self._write_all()

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        """Add a row. Values that are neither numbers nor texts are left out."""
        plain = {name: value for name, value in values.items() if isinstance(value, (str, int, float, np.generic))}
        row = {STEP: str(step), **{name: _text(value) for name, value in plain.items()}}
        self.rows.append(row)
        new = [name for name in row if name not in self.columns]
        if new:
            self.columns += sorted(new)
            self._write_all()
            return
        try:
            with self.path.open("a", encoding="utf-8", newline="") as file:
                csv.DictWriter(file, self.columns, lineterminator="\n").writerow(row)
        except OSError as error:
            raise disk_error(error, self.path) from None

    @override
    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        self.add(step, {k: v for k, v in key_values.items() if "csv" not in (key_excluded.get(k) or ())})

    @override
    def close(self) -> None:
        """Do nothing: no file is open between rows."""

    def _read(self, resume_at: int) -> None:
        try:
            text = self.path.read_text(encoding="utf-8")
            # An incomplete row of a killed process is removed; its step is repeated.
            reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
            self.columns = list(reader.fieldnames or [STEP])
            for row in reader:
                if int(row[STEP]) > resume_at:
                    break
                self.rows.append({name: value or "" for name, value in row.items() if name is not None})
        except (OSError, ValueError, TypeError, KeyError, csv.Error) as error:
            raise unreadable(self.path, str(error)) from None

    def _write_all(self) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        atomic_write(self.path, text.getvalue())


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else repr(float(value))
    return str(value)


# --- Reading ----------------------------------------------------------------------------------------------------------

ELAPSED: Final = "time/time_elapsed"
"""Column of the progress table with the seconds since the training was started or resumed."""


def read_rows(file: Path) -> list[dict[str, str]]:
    """Return the rows of a table.

    Raises:
        ResultsError: The table cannot be read.
    """
    try:
        with file.open(encoding="utf-8", newline="") as text:
            return list(csv.DictReader(text))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise unreadable(file, str(error)) from None


def wall_clock(progress: Path) -> dict[int, float]:
    """Return the seconds of training at each step, over all resumptions: the column restarts at each resumption.

    Raises:
        ResultsError: The table cannot be read.
    """
    before = latest = 0.0
    found = {}
    try:
        for row in read_rows(progress):
            if row.get(ELAPSED):
                elapsed = float(row[ELAPSED])
                if elapsed < latest:
                    before += latest
                latest = elapsed
                found[int(row[STEP])] = round(before + elapsed, 1)
    except (KeyError, ValueError) as error:
        raise unreadable(progress, str(error)) from None
    return found


def unreadable(file: Path, reason: str) -> ResultsError:
    """Return the error of a table that cannot be read."""
    return ResultsError(
        "results-damaged",
        f"cannot be read: {reason}",
        where=str(file),
        expected="a table that `ccgym train` wrote",
        hint="remove the file to continue without it",
    )


# --- TensorBoard ------------------------------------------------------------------------------------------------------


class EventOutput(TensorBoardOutputFormat):
    """TensorBoard's events. Events of repeated steps are marked as void, so the axis continues."""

    def __init__(self, folder: Path, resume_at: int | None) -> None:
        # The parent's constructor has no argument for the step to continue from; it only opens the writer.
        purge = None if resume_at is None else resume_at + 1
        self.writer = SummaryWriter(log_dir=str(folder), purge_step=purge)
        self._is_closed = False


@contextmanager
def quiet_event_writer() -> Iterator[None]:
    """Suppress the traceback of TensorBoard's thread if the disk fails: its next flush raises the same error."""
    before = threading.excepthook

    def hook(failed: threading.ExceptHookArgs) -> None:
        if not isinstance(failed.exc_value, OSError):
            before(failed)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


def make_logger(table: Table, folder: Path, resume_at: int | None) -> tuple[Logger, SummaryWriter]:
    """Return a logger for both, and the writer for figures and text.

    Args:
        table: The progress table.
        folder: Directory of the event files.
        resume_at: Step of the resumed checkpoint; None for a new run.
    """
    events = EventOutput(folder, resume_at)
    return Logger(folder=None, output_formats=[table, events]), events.writer
