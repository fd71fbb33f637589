"""Collapsed: 1 if a run used too little of the link, else 0; the mean is the fraction of such runs."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.config.quantities import ProbabilityField
from ccgym.experiments.metrics.base import Better, Measured, OverTime


class Collapsed(OverTime):
    """Whether the utilization is below a bound."""

    BETTER: ClassVar[Better] = "lower"
    version: ClassVar[int] = 2

    label: str = "collapsed runs"
    unit: str = "%"
    below: ProbabilityField
    """Utilization below which a run counts as collapsed."""

    @override
    def of(self, run: Measured) -> float:
        return float(run.sample.utilization(self.places(run), *self.span(run)) < self.below)
