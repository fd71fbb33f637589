"""Stopping a training run from outside: the first signal asks it to stop at the next update, the second at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """While this context manager is active, SIGINT and SIGTERM are requests instead of killing the process.

    Signals are the main thread's; in any other thread nothing is changed.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        """Prepare.

        Args:
            say: Shows a line to the user.
        """
        self._wanted = False
        self._say = say
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def requested(self) -> bool:
        """Whether one has come."""
        return self._wanted

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._wanted:
            raise KeyboardInterrupt
        self._wanted = True
        self._say(f"{signal.Signals(number).name}: stopping after this update; a second one stops at once")
