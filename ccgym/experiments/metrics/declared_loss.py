"""Declared loss: packets that the flows' senders declared lost per packet sent, random loss included."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class DeclaredLoss(OverTime):
    """Loss from the view of the flows; ``loss_rate`` is the loss at the bottleneck's queue, of all flows together."""

    BETTER: ClassVar[Better] = "lower"

    label: str = "declared loss"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float:
        return run.sample.loss(self.places(run), *self.span(run))
