"""Ending simulations early from another thread, those too that a scheme in Python keeps busy."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

GRACE_S: Final = 0.2
"""How long a simulation has to end by itself before an exception ends its scheme, seconds."""


class Halt:
    """Ends the simulations that were given it."""

    def __init__(self) -> None:
        from ccgym import _core

        self.native = _core.Halt()
        self._lock = threading.Lock()
        self._threads: set[int] = set()

    @contextmanager
    def interrupts(self) -> Iterator[None]:
        """Code of others runs in this thread: :meth:`set` may raise ``KeyboardInterrupt`` in it."""
        own = threading.get_ident()
        with self._lock:
            self._threads.add(own)
        try:
            yield
        finally:
            with self._lock:
                self._threads.discard(own)

    def set(self) -> None:
        """End them. The native core looks up between events; a scheme that does not return from one is interrupted."""
        self.native.set()
        deadline = time.monotonic() + GRACE_S
        while self._threads and time.monotonic() < deadline:
            time.sleep(GRACE_S / 10)
        with self._lock:
            for thread in self._threads:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
