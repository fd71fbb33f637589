"""Delay percentile: of the one-way delays of the packets that left the path, propagation and queueing together."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class DelayPercentile(OverTime):
    """Over the packets of the part; None where none left."""

    BETTER: ClassVar[Better] = "lower"
    LAYER: ClassVar[str] = "l3"
    NEEDS_PACKETS: ClassVar[bool] = True

    label: str = "percentile of the one-way delay"
    unit: str = "ms"
    percentile: float = Field(default=99, ge=0, le=100)
    """Which percentile."""

    @override
    def of(self, run: Measured) -> float | None:
        delays = self.departures(run).delays_ns
        return float(np.percentile(delays, self.percentile)) / 1e6 if delays.size else None
