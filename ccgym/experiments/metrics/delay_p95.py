"""p95 delay: 95th percentile of the one-way delay of all packets, as Pantheon computes it."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, Metric


class DelayP95(Metric):
    """Pantheon's delay, propagation and queueing together."""

    BETTER: ClassVar[Better] = "lower"
    LAYER: ClassVar[str] = "l3"
    NEEDS_PACKETS: ClassVar[bool] = True

    label: str = "p95 one-way delay"
    unit: str = "ms"

    @override
    def of(self, run: Measured) -> float | None:
        return run.record.total.delay_p95_ms
