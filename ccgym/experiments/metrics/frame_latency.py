"""Frame latency: from the capture of a video frame to the arrival of its last packet: the mean, or a percentile."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field
from typing_extensions import override

from ccgym.evaluation.metrics import frame_delays
from ccgym.experiments.metrics.base import Better, Measured, OverTime


class OfFrames(OverTime):
    """A metric of the frames that the flows' encoders captured in the part of the run."""

    NEEDS_PACKETS: ClassVar[bool] = True
    BETTER: ClassVar[Better] = "lower"

    def delays_ms(self, run: Measured) -> npt.NDArray[np.float64]:
        """Latency of each frame, ms; negative for one that did not arrive whole."""
        native = run.record.native
        assert native is not None, "a record straight from its run"
        packets = native.packets("data")
        begin_s, end_s = self.span(run)
        found = []
        for place in self.places(run):
            frames = native.frames(place)
            inside = (frames["captured_ns"] >= begin_s * 1e9) & (frames["captured_ns"] <= end_s * 1e9)
            found.append(frame_delays(frames, packets["left_ns"][packets["flow"] == place])[inside] / 1e6)
        return np.concatenate(found)


class FrameLatency(OfFrames):
    """Of the frames that arrived whole, those of all flows together; nothing where none did."""

    label: str = "frame latency"
    unit: str = "ms"
    percentile: float | None = Field(default=None, ge=0, le=100)
    """Which percentile, 100 being the maximum; by default the mean."""

    @override
    def of(self, run: Measured) -> float | None:
        delays = self.delays_ms(run)
        arrived = delays[delays >= 0]
        if not arrived.size:
            return None
        return float(arrived.mean() if self.percentile is None else np.percentile(arrived, self.percentile))
