"""Frame loss: fraction of captured video frames that did not arrive completely: skipped, partly lost, or in flight."""

from __future__ import annotations

from typing_extensions import override

from ccgym.experiments.metrics.base import Measured
from ccgym.experiments.metrics.frame_latency import OfFrames


class FrameLoss(OfFrames):
    """Fraction over the frames of all flows together; None if no frame was captured."""

    label: str = "frame loss"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float | None:
        delays = self.delays_ms(run)
        return float((delays < 0).mean()) if delays.size else None
