"""Mean delay: mean one-way delay of the packets that left the path, propagation and queueing together."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class MeanDelay(OverTime):
    """Mean over packets; None if no packet left the path."""

    BETTER: ClassVar[Better] = "lower"
    LAYER: ClassVar[str] = "l3"
    NEEDS_PACKETS: ClassVar[bool] = True

    label: str = "mean one-way delay"
    unit: str = "ms"

    @override
    def of(self, run: Measured) -> float | None:
        delays = self.departures(run).delays_ns
        return float(delays.mean()) / 1e6 if delays.size else None
