"""How the work on a results directory goes, as a file in it that ``ccgym watch`` reads.

It is written at most once a :data:`TURN_S`, atomically, by a thread: also while nothing ends, so that its age tells
whether the process is alive.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, Final

from ccgym.errors import PlatformError
from ccgym.evaluation.directory import PROGRESS_FILE
from ccgym.evaluation.engine import Observer
from ccgym.files import atomic_write

TURN_S: Final = 1.0
"""Seconds between two writes."""
WINDOW_S: Final = 60.0
"""Seconds over which the rate is that of the file: long runs and short ones take turns."""
MAX_NAMED: Final = 64
"""Running runs, and failures, that are named; the others are counted."""


class ProgressFile:
    """An :class:`~ccgym.evaluation.engine.Observer` that passes all on, and keeps the file. A context manager.

    Args:
        directory: The results directory. The file appears once somebody else has made it.
        observer: What it passes on to.
    """

    def __init__(self, directory: Path, observer: Observer) -> None:
        self._file = directory / PROGRESS_FILE
        self._observer = observer
        self._lock = threading.Lock()
        self._stages: dict[str, dict[str, int]] = {}
        self._ends: deque[tuple[float, str, int]] = deque()
        self._running: dict[str, float] = {}
        self._failures: list[str] = []
        self._failed = 0
        self._started = time.time()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, name="progress file", daemon=True)

    def __enter__(self) -> ProgressFile:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._write("done" if kind is None else "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed")

    def notice(self, text: str) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        self._observer.notice(text)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        with self._lock:
            self._stages[what] = {"total": total, "done": done, "kept": done}
        self._observer.begin(what, total, done)

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        with self._lock:
            stage = self._stages[what]
            stage["done"] += by
            stage["kept"] += by if kept else 0
            if not kept:
                self._ends.append((time.time(), what, by))
        self._observer.advance(what, by, note, kept=kept)

    def began(self, name: str) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        with self._lock:
            self._running[name] = time.time()
        self._observer.began(name)

    def ended(self, name: str, error: str | None) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        with self._lock:
            self._running.pop(name, None)
            if error is not None:
                self._failed += 1
                if len(self._failures) < MAX_NAMED:
                    self._failures.append(f"{name}: {error.partition(chr(10))[0]}")
        self._observer.ended(name, error)

    def _keep_writing(self) -> None:
        while True:
            self._write("running")
            if self._over.wait(TURN_S):
                return

    def _write(self, state: str) -> None:
        if not self._file.parent.is_dir():
            return
        with self._lock:
            content = self._content(state)
        try:
            atomic_write(self._file, json.dumps(content, ensure_ascii=False) + "\n")
        except (OSError, PlatformError):
            return  # the results will say what is wrong with the disk

    def _content(self, state: str) -> dict[str, Any]:
        now = time.time()
        while self._ends and self._ends[0][0] < now - WINDOW_S:
            self._ends.popleft()
        span = max(min(now - self._started, WINDOW_S), 1e-3)
        ended: dict[str, int] = {}
        for _, what, by in self._ends:
            ended[what] = ended.get(what, 0) + by
        return {
            "state": state,
            "written": now,
            "started": self._started,
            "host": platform.node(),
            "pid": os.getpid(),
            "stages": [
                {"name": name, **stage, "per_s": ended.get(name, 0) / span} for name, stage in self._stages.items()
            ],
            "running": [[name, now - since] for name, since in list(self._running.items())[:MAX_NAMED]],
            "running_count": len(self._running),
            "failures": self._failures,
            "failed": self._failed,
        }
