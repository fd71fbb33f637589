"""Queueing delay: mean wait of a packet in the bottleneck's queue over the whole run."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, Metric


class QueueingDelay(Metric):
    """Mean wait per packet, by Little's law."""

    BETTER: ClassVar[Better] = "lower"
    LAYER: ClassVar[str] = "l2"

    label: str = "queueing delay"
    unit: str = "ms"

    @override
    def of(self, run: Measured) -> float:
        return run.sample.queue_delay_ms
