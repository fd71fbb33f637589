"""A second process that draws figures while this one goes on.

Drawing holds the interpreter's lock, so threads would not help. A plain process reads its tasks from standard input and
writes a byte to standard output after each. Once its parent has ended, that write fails and it ends. So it outlives its
parent by one task at most, however the parent ended, and leaves nothing else behind.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from ccgym.emulation.process import environment

Task: TypeAlias = Callable[[], object]
"""Draws something. It is pickled."""

_DONE: Final = b"."
"""What a process writes after each task."""


class DrawingProcess:
    """A process that does some tasks, one after the other, seen from outside."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = deque(tasks)
        # A session of its own: control-C in the terminal is for us alone, and we end the process.
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import work; work()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as tasks_end:
            tasks_end.write(pickle.dumps(list(tasks)))

    def wait(self) -> None:
        """Wait until its next task is done. If the process ended early, the task is done here: what is wrong shows as
        an error of this process."""
        task = self._tasks.popleft()
        assert self._process.stdout is not None
        if self._process.stdout.read(1) != _DONE:
            task()

    def end(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def work() -> None:
    """What such a process does: read the tasks, do one after the other, and say so."""
    # When the parent has ended, so does the process, silently.
    if sys.platform != "win32":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for task in pickle.load(sys.stdin.buffer):
        task()
        os.write(sys.stdout.fileno(), _DONE)
