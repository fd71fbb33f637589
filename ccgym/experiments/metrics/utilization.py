"""Utilization: unique data with its headers, divided by the capacity of the link."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class Utilization(OverTime):
    """Fraction of the link's capacity that flows used."""

    BETTER: ClassVar[Better] = "higher"
    version: ClassVar[int] = 2

    label: str = "utilization"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float:
        return run.sample.utilization(self.places(run), *self.span(run))
