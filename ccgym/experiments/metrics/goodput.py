"""Goodput: unique payload that arrives at the receiver per time."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class Goodput(OverTime):
    """Sum of the flows' goodputs."""

    BETTER: ClassVar[Better] = "higher"

    label: str = "goodput"
    unit: str = "Mbit/s"

    @override
    def of(self, run: Measured) -> float:
        begin, end = self.span(run)
        return sum(run.sample.goodput_mbps(place, begin, end) for place in self.places(run))
