"""Limited output of a child process, which may be an external program, or run on another machine."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import Final

KEPT: Final = 64 * 2**10
"""Number of bytes kept from the beginning, and the same number from the end."""

_AT_ONCE: Final = 2**16
_FLOOD: Final = 2**20
"""After this number of bytes, the output is read slowly, so that the child does not keep a processor busy."""
_PAUSE_S: Final = 0.01
_TURN_MS: Final = 200


class ChildOutput:
    """A pipe that a child writes to. A thread empties it, so that the child never waits for a reader.

    Call :meth:`begun` after the child has inherited :attr:`fd`, and :meth:`close` at the end.
    """

    def __init__(self) -> None:
        self._source, self.fd = os.pipe()
        os.set_blocking(self._source, False)
        self._head, self._tail, self._written = bytearray(), bytearray(), 0
        self._lock = threading.Lock()
        self._open = self._held = True
        threading.Thread(target=self._empty, daemon=True).start()

    def begun(self) -> None:
        """Close this process's write end after the child has inherited it, so that the pipe ends with the child."""
        if self._held:
            self._held = False
            os.close(self.fd)

    def read(self) -> bytes:
        """Return the output so far. For long output, return its beginning and end, with a note between them."""
        for _ in range(_FLOOD // _AT_ONCE):
            if not self._take():
                break
        with self._lock:
            left_out = self._written - len(self._head) - len(self._tail)
            between = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
            return bytes(self._head + between + self._tail)

    def close(self) -> None:
        """Stop reading; the kept output remains."""
        self.begun()
        with self._lock:
            if self._open:
                self._open = False
                os.close(self._source)

    def _take(self) -> bool:
        """Read the available output; return False if there is none, or the output has ended."""
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
        # The descriptor may be closed, and its number reused, during the wait: then reading is refused.
        while self._open:
            found = waiting.poll(_TURN_MS)
            if found and not self._take() and self._open:
                return
            if self._written > _FLOOD:
                time.sleep(_PAUSE_S)
