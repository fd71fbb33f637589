"""Loss: bytes that did not leave the path per byte that entered, including bytes still on their way (Pantheon)."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, Metric


class Loss(Metric):
    """Pantheon's loss of all flows together, random loss included."""

    BETTER: ClassVar[Better] = "lower"
    LAYER: ClassVar[str] = "l3"
    NEEDS_PACKETS: ClassVar[bool] = True

    label: str = "loss"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float | None:
        return run.record.total.loss
