"""Goodput ratio: the smallest goodput of the flows divided by the largest; 1 is fair."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class GoodputRatio(OverTime):
    """Equality of the flows' goodputs; 0 if nothing arrived."""

    BETTER: ClassVar[Better] = "higher"

    label: str = "goodput ratio"

    @override
    def of(self, run: Measured) -> float:
        rates = [run.sample.goodput_mbps(place, *self.span(run)) for place in self.places(run)]
        return min(rates) / max(rates) if max(rates) > 0 else 0.0
