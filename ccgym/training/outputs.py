"""Where SB3's logger writes: our table and TensorBoard's event files, both of which go on when a run is resumed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from torch.utils.tensorboard import SummaryWriter
from typing_extensions import override

from ccgym.training.tables import Table


class TableOutput(KVWriter):
    """Rows of ``progress.csv``."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @override
    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Add a row of what is not excluded from CSV."""
        self._table.add(step, {k: v for k, v in key_values.items() if "csv" not in (key_excluded.get(k) or ())})

    @override
    def close(self) -> None:
        """Nothing is open between rows."""


class EventOutput(TensorBoardOutputFormat):
    """TensorBoard's events. Those of steps that are taken again are marked as void, so the axis goes on."""

    def __init__(self, folder: Path, resume_at: int | None) -> None:
        # Our parent's constructor cannot say where to go on; all it does is open the writer.
        purge = None if resume_at is None else resume_at + 1
        self.writer = SummaryWriter(log_dir=str(folder), purge_step=purge)
        self._is_closed = False


@contextmanager
def quiet_event_writer() -> Iterator[None]:
    """Keep quiet when the disk refuses TensorBoard's thread, which prints a traceback: its next flush says the same."""
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
    """A logger for both, and the writer for figures and text.

    Args:
        table: The progress table.
        folder: Where event files go.
        resume_at: Step of the checkpoint that is resumed from; None for a new run.
    """
    events = EventOutput(folder, resume_at)
    return Logger(folder=None, output_formats=[TableOutput(table), events]), events.writer
