"""Observers of how work goes."""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Receives the progress of work, be it running or drawing; called from the main thread only."""

    def notice(self, text: str) -> None:
        """Something worth a line: a damaged result that is run again, a scheme that is left out."""
        ...

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """A stage begins, of ``total`` steps, ``done`` of which were done before (``"simulating"``, ``"figures"``)."""
        ...

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """Steps of a stage are done; ``note`` says which, in a few words (``"bbr_run1"``).

        ``kept``: they were done before, and are only counted now.
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
