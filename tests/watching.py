"""An observer that remembers what it was told."""

from __future__ import annotations

from ccgym.evaluation.observer import Silent


class Watching(Silent):
    """Counts what is run and what was there; as if interrupted after some runs."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.ran = self.kept = 0
        self.names: list[str] = []
        self.notices: list[str] = []
        self.begun: list[int] = []
        self.stages: dict[str, int] = {}
        self.stop_after = stop_after

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self.begun.append(total)
        self.stages[what] = 0
        self.kept += done

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        self.stages[what] += by
        self.kept += by if kept else 0
        self.ran += 0 if kept else by
        self.names += [] if kept else [note]
        if self.stop_after is not None and self.ran >= self.stop_after:
            raise KeyboardInterrupt
