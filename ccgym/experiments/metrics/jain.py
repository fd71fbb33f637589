"""Jain's index: (Σ goodput)² / (n · Σ goodput²) over the flows; 1 is equal, 1/n is one flow alone (Jain, 1984)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


def jain(run: Measured, places: Sequence[int], begin_s: float, end_s: float) -> float | None:
    """Return the index of the flows with these indices; None if nothing arrived."""
    rates = [run.sample.goodput_mbps(place, begin_s, end_s) for place in places]
    squares = sum(rate**2 for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else None


class Jain(OverTime):
    """Jain's fairness index of the flows' goodputs; None if nothing arrived."""

    BETTER: ClassVar[Better] = "higher"

    label: str = "Jain's index"

    @override
    def of(self, run: Measured) -> float | None:
        return jain(run, self.places(run), *self.span(run))
