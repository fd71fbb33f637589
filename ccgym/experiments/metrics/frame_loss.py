"""Frame loss: video frames that did not arrive whole per frame captured: skipped, lost in part, or on their way."""

from __future__ import annotations

from typing_extensions import override

from ccgym.experiments.metrics.base import Measured
from ccgym.experiments.metrics.frame_latency import OfFrames


class FrameLoss(OfFrames):
    """Of the flows' frames together; nothing where none was captured."""

    label: str = "frame loss"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float | None:
        delays = self.delays_ms(run)
        return float((delays < 0).mean()) if delays.size else None
