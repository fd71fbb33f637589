"""What a child process writes, kept within bounds: it may be a program of others, or run on another machine."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import Final

KEPT: Final = 64 * 2**10
"""Bytes kept of the beginning, and as many of the end."""

_AT_ONCE: Final = 2**16
_FLOOD: Final = 2**20
"""A child that has written more is read slowly, so that it does not keep a processor busy."""
_PAUSE_S: Final = 0.01
_TURN_MS: Final = 200


class ChildOutput:
    """A pipe that a child writes to. A thread empties it, so that the child does not wait for its reader.

    Call :meth:`begun` once the child has inherited :attr:`fd`, and :meth:`close` at the end.
    """

    def __init__(self) -> None:
        self._source, self.fd = os.pipe()
        os.set_blocking(self._source, False)
        self._head, self._tail, self._written = bytearray(), bytearray(), 0
        self._lock = threading.Lock()
        self._open = self._held = True
        threading.Thread(target=self._empty, daemon=True).start()

    def begun(self) -> None:
        """The child has its end of the pipe: give up ours, so that the pipe ends with the child."""
        if self._held:
            self._held = False
            os.close(self.fd)

    def read(self) -> bytes:
        """What was written so far; of much of it the beginning and the end, with a line between that says so."""
        for _ in range(_FLOOD // _AT_ONCE):
            if not self._take():
                break
        with self._lock:
            left_out = self._written - len(self._head) - len(self._tail)
            between = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
            return bytes(self._head + between + self._tail)

    def close(self) -> None:
        """Read no more; what was kept stays."""
        self.begun()
        with self._lock:
            if self._open:
                self._open = False
                os.close(self._source)

    def _take(self) -> bool:
        """Read what is there; False if nothing is, or there is nothing more to come."""
        with self._lock:
            if not self._open:
                return False
            try:
                content = os.read(self._source, _AT_ONCE)
            except BlockingIOError:
                return False
            self._written += len(content)
            room = KEPT - len(self._head)
            self._head += content[:room]
            self._tail += content[room:]
            del self._tail[:-KEPT]
            return bool(content)

    def _empty(self) -> None:
        waiting = select.poll()
        waiting.register(self._source, select.POLLIN)
        # The descriptor may be closed, and its number taken again, while this waits: then reading is refused.
        while self._open:
            found = waiting.poll(_TURN_MS)
            if found and not self._take() and self._open:
                return
            if self._written > _FLOOD:
                time.sleep(_PAUSE_S)
