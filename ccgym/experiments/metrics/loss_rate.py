"""Loss rate: packets that the bottleneck's queue dropped per packet sent; random loss does not count."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class LossRate(OverTime):
    """Self-inflicted loss of all flows together."""

    BETTER: ClassVar[Better] = "lower"
    LAYER: ClassVar[str] = "l2"

    label: str = "loss rate"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float:
        return run.sample.drop_rate(*self.span(run))
