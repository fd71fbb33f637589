"""Progress over several calls of :func:`~ccgym.evaluation.engine.measure` as one stage."""

from __future__ import annotations

from ccgym.evaluation.engine import Observer


class Counting:
    """Adds up the progress of the parts; an :class:`~ccgym.evaluation.engine.Observer`.

    Args:
        observer: Is told about the sum.
        stage: What the stage is called.
    """

    def __init__(self, observer: Observer, stage: str) -> None:
        self._observer = observer
        self._stage = stage
        self.part = ""
        """The part that is under way, for notes."""

    def begin_all(self, total: int) -> None:
        """The stage begins: ``total`` runs of all parts."""
        self._observer.begin(self._stage, total)

    def notice(self, text: str) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        self._observer.notice(f"{self.part}: {text}")

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        del what, total
        if done:
            self._observer.advance(self._stage, done, self.part, kept=True)

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        del what, note
        self._observer.advance(self._stage, by, self.part, kept=kept)
