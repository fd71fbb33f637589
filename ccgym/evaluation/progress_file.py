"""Progress of runs, in a file of the results directory for other processes such as ``ccgym report watch``.

``.ccgym_progress.json`` is written when runs begin and end, at most every half second, and again at the end.
No result depends on it: if it cannot be written, it is left out.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from ccgym.errors import ResultsError
from ccgym.files import UnreadableError, atomic_write, read_json

PROGRESS_FILE: Final = ".ccgym_progress.json"
EVERY_S: Final = 0.5
"""Minimum time between two writes, seconds."""
MAX_FAILURES: Final = 100
"""Maximum number of failures with names; further failures are only counted."""

State: TypeAlias = Literal["running", "ended", "interrupted"]


@dataclass
class RunProgress:
    """Progress of the runs of a results directory. Times are seconds since the epoch."""

    what: str
    """The stage: ``simulating`` or ``running``."""
    total: int
    """Number of all runs, earlier runs included."""
    kept: int = 0
    """Number of runs from earlier calls."""
    done: int = 0
    """Number of runs that ended in this call."""
    failed: int = 0
    """Number of these runs that ended in an error."""
    running: dict[str, float] = field(default_factory=dict)
    """Running runs: the name and start time of each."""
    failures: list[str] = field(default_factory=list)
    """Names and errors of failed runs."""
    run_s: float = 0.0
    """Sum of the durations of this call's runs, seconds."""
    started: float = 0.0
    updated: float = 0.0
    state: State = "running"
    pid: int = 0
    host: str = ""

    @property
    def left(self) -> int:
        """Number of runs that have not ended."""
        return max(0, self.total - self.kept - self.done)

    @property
    def rate(self) -> float | None:
        """Runs per second in this call; None before the first run ended."""
        passed = self.updated - self.started
        return self.done / passed if self.done and passed > 0 else None

    @property
    def eta_s(self) -> float | None:
        """Estimated seconds until the last run ends, from the rate; None without a rate."""
        return self.left / self.rate if self.rate else None

    @classmethod
    def load(cls, directory: Path) -> RunProgress | None:
        """Read the progress in a results directory; None without the file. If its process has died, it was interrupted.

        Raises:
            ResultsError: The file is damaged.
        """
        file = directory / PROGRESS_FILE
        try:
            found = cls(**read_json(file))
        except FileNotFoundError:
            return None
        except (UnreadableError, OSError, TypeError) as error:
            raise ResultsError(
                "results-damaged",
                f"the file cannot be read: {error}",
                where=str(file),
                expected="a file that ccgym writes while it runs",
            ) from None
        if found.state == "running" and found.host == socket.gethostname() and not alive(found.pid):
            found.state = "interrupted"
        return found


def alive(pid: int) -> bool:
    """Return whether a process of this machine is running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class ProgressFile:
    """Writes the progress of runs. Use it as a context manager; several threads may report their runs.

    Args:
        directory: The results directory; None: nothing is written.
        total: Number of runs of all stages together; None: the sum over the stages.
    """

    def __init__(self, directory: Path | None, total: int | None = None) -> None:
        self._file = None if directory is None else directory / PROGRESS_FILE
        self._lock = threading.Lock()
        self._counts = total is None
        now = time.time()
        self._now = RunProgress("", total or 0, started=now, updated=now, pid=os.getpid(), host=socket.gethostname())
        self._written = 0.0

    def __enter__(self) -> ProgressFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._lock:
            self._now.state = "ended" if kind is None else "interrupted"
            self._now.running.clear()
            self._write(always=True)

    def begin(self, what: str, total: int, kept: int) -> None:
        """Add planned runs to the total; ``kept`` of them are already finished."""
        with self._lock:
            self._now.what = what
            self._now.total += total if self._counts else 0
            self._now.kept += kept
            self._write(always=True)

    def run_begins(self, name: str) -> None:
        """Record the start of a run."""
        with self._lock:
            self._now.running[name] = time.time()
            self._write()

    def run_ends(self, name: str, error: str | None = None) -> None:
        """Record the end of a run, successful or with an error."""
        with self._lock:
            self._now.run_s += time.time() - self._now.running.pop(name, time.time())
            self._now.done += 1
            if error is not None:
                self._now.failed += 1
                if len(self._now.failures) < MAX_FAILURES:
                    self._now.failures.append(f"{name}: {error}")
            self._write()

    def _write(self, *, always: bool = False) -> None:
        now = time.time()
        if self._file is None or (not always and now - self._written < EVERY_S):
            return
        self._written = self._now.updated = now
        document: dict[str, Any] = asdict(self._now)
        with suppress(OSError):
            atomic_write(self._file, json.dumps(document, ensure_ascii=False) + "\n")
