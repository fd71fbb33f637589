"""Frame latency: time from the capture of a video frame to the arrival of its last packet; mean or percentile."""

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
        """Return the latency of each frame, ms; negative for an incomplete frame."""
        native = run.record.native
        assert native is not None, "the record must be of a run in this process"
        packets = native.packets("data")
        begin_s, end_s = self.span(run)
        found = []
        for place in self.places(run):
            frames = native.frames(place)
            inside = (frames["captured_ns"] >= begin_s * 1e9) & (frames["captured_ns"] <= end_s * 1e9)
            found.append(frame_delays(frames, packets["left_ns"][packets["flow"] == place])[inside] / 1e6)
        return np.concatenate(found)


class FrameLatency(OfFrames):
    """Latency over the complete frames of all flows together; None if there is no complete frame."""

    label: str = "frame latency"
    unit: str = "ms"
    percentile: float | None = Field(default=None, ge=0, le=100)
    """The percentile, 100 is the maximum; by default the mean."""

    @override
    def of(self, run: Measured) -> float | None:
        delays = self.delays_ms(run)
        arrived = delays[delays >= 0]
        if not arrived.size:
            return None
        return float(arrived.mean() if self.percentile is None else np.percentile(arrived, self.percentile))
