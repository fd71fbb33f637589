"""Delay percentile: percentile of the packets' one-way delays, propagation and queueing together."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class DelayPercentile(OverTime):
    """Percentile over the packets that left the path in the part of the run; None if no packet left."""

    BETTER: ClassVar[Better] = "lower"
    LAYER: ClassVar[str] = "l3"
    NEEDS_PACKETS: ClassVar[bool] = True

    label: str = "percentile of the one-way delay"
    unit: str = "ms"
    percentile: float = Field(default=99, ge=0, le=100)
    """The percentile."""

    @override
    def of(self, run: Measured) -> float | None:
        delays = self.departures(run).delays_ns
        return float(np.percentile(delays, self.percentile)) / 1e6 if delays.size else None
