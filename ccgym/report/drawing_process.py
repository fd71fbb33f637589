"""A second process that draws figures while this process continues.

Drawing holds the interpreter's lock, so threads would not help. A plain process reads its tasks from standard input and
writes a byte to standard output after each. After its parent has ended, this write fails and the process ends. So it
outlives its parent by at most one task, however the parent ended, and leaves nothing else behind.
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
"""A function that draws something. It is pickled."""

_DONE: Final = b"."
"""The byte that the process writes after each task."""


class DrawingProcess:
    """Handle of a process that does some tasks, one after the other."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = deque(tasks)
        # A separate session: control-C in the terminal reaches only this process, which then ends the other.
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
        """Wait until its next task is done. If the process ended early, this process does the task and raises its
        error."""
        task = self._tasks.popleft()
        assert self._process.stdout is not None
        if self._process.stdout.read(1) != _DONE:
            task()

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def work() -> None:
    """Read the tasks, do them one after the other, and write a byte after each: the main function of the process."""
    # If the parent has ended, this process ends too, without a message.
    if sys.platform != "win32":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for task in pickle.load(sys.stdin.buffer):
        task()
        os.write(sys.stdout.fileno(), _DONE)
