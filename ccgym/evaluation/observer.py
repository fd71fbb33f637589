"""Observers of progress."""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Receives the progress of runs or figures; called only from the main thread."""

    def notice(self, text: str) -> None:
        """Receive a message for the user: a damaged result that is run again, a scheme that is left out."""
        ...

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Begin a stage of ``total`` steps, of which ``done`` were done earlier (``"simulating"``, ``"figures"``)."""
        ...

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """Count finished steps of a stage; ``note`` is a short description (``"bbr_run1"``).

        ``kept``: the steps were done by an earlier call, and are only counted now.
        """
        ...


class Silent:
    """An :class:`Observer` that does nothing."""

    def notice(self, text: str) -> None:
        """See :class:`Observer`."""

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """See :class:`Observer`."""

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """See :class:`Observer`."""
